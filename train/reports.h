// Callbacks that show a run in other programs while it goes on: TensorBoard's event file, a timeline of some steps.
#pragma once
#include <memory>
#include <string>

#include "cinta/train/callback.h"

namespace cinta::train {

class TensorBoardLog;
class Trace;

/// The lines of metrics.jsonl as events beside it; nothing without a directory.
class TensorBoardReport final : public TrainerCallback {
 public:
  void on_train_begin(const Moment& now) override;
  void on_log(const Moment& now, const MetricFields& fields) override;
  void on_evaluate(const Moment& now, const MetricFields& fields) override;

 private:
  std::shared_ptr<TensorBoardLog> log_;
};

/// A timeline (train/trace.h) of the steps `first` to `last`, both counted from 1 and traced, in the file `path`. The
/// file is written after the last of them, or at the end of a run that ends before. Steps that are not traced cost what
/// they cost without this callback.
class TraceReport final : public TrainerCallback {
 public:
  /// Throws ValueError unless 1 <= first <= last.
  TraceReport(std::string path, int64_t first, int64_t last, Where where = Where::current());
  /// Throws FileError where the file could not be written, ValueError when the run will not do the steps.
  void on_check(const Moment& now) override;
  void on_train_begin(const Moment& now) override;
  void on_step_begin(const Moment& now) override;
  void on_step_end(const Moment& now) override;
  void on_train_end(const Moment& now) override;

 private:
  std::string path_;
  int64_t first_, last_;
  Where where_;
  std::shared_ptr<Trace> trace_;  ///< until it is written
};

}  // namespace cinta::train
