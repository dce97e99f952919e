// report.html: one page without outside parts that shows a run while it goes on and when it is over. How it stands, the
// curves of its numbers, and for one of its steps: where time and memory went, and the tape.
#pragma once
#include <memory>
#include <string>

#include "cinta/train/callback.h"

namespace cinta::train {

/// Keeps report.html in the run's directory, and beside it times.jsonl: speed and memory by step, which metrics.jsonl
/// leaves out so that it is the same for every machine. Without a directory it does nothing. A report that cannot be
/// written is complained of once on standard error; the training goes on.
///
/// One step is watched (train/step_profile.h): the third of this process, or the next that no other callback traces.
/// Every other step costs two looks at the clock. Add it after callbacks that trace. A run resumed goes on with the
/// history of its page; one that throws has it say so.
class ReportPage final : public TrainerCallback {
 public:
  struct Options {
    std::string command = {};       ///< what started the run
    double seconds_between = 3;     ///< least time from one version to the next
    double greatest_share = 0.005;  ///< of the time that writing it may take; where it takes long it is written less
  };
  ReportPage();
  explicit ReportPage(Options options);
  ~ReportPage() override;
  void on_train_begin(const Moment& now) override;
  void on_step_begin(const Moment& now) override;
  void on_step_end(const Moment& now) override;
  void on_log(const Moment& now, const MetricFields& fields) override;
  void on_evaluate(const Moment& now, const MetricFields& fields) override;
  void on_train_end(const Moment& now) override;

 private:
  class Page;
  Options options_;
  std::shared_ptr<Page> page_;  ///< while a run with a directory is under way
};

}  // namespace cinta::train
