// Event files that TensorBoard shows: the scalars of a run. A file is a row of records, each with its length and two
// checksums; what is in them is written here without the library that usually does it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cinta/data/byte_sink.h"
#include "cinta/train/metrics.h"

namespace cinta::train {

/// CRC-32C (Castagnoli's polynomial), which the format's checksums are made of.
uint32_t crc32c(std::string_view bytes);

/// Writes records to `sink`, each by one write. Wall times are seconds since 1970.
class EventWriter {
 public:
  /// Begins with the record that names the format.
  EventWriter(data::ByteSink& sink, double wall_time);
  /// Tells the reader that a run starts anew at `step`: what earlier files say of this step and later ones, it forgets.
  void start(int64_t step, double wall_time);
  /// One point of each series, under tags such as "train/loss".
  void scalars(int64_t step, const std::vector<std::pair<std::string, float>>& values, double wall_time);

 private:
  data::ByteSink& sink_;
};

/// The event file of a run, beside its metrics.jsonl: the numbers of a line are under train/, those of an evaluation's
/// line, which has names in eval_, under eval/.
class TensorBoardLog {
 public:
  /// A run that begins (`step` 0) removes the event files of an earlier one from `directory`. A run resumed after
  /// `step` begins a new file, which comes after the earlier ones and has what they say of later steps forgotten.
  /// Throws FileError.
  TensorBoardLog(const std::string& directory, int64_t step, Where where = Where::current());
  TensorBoardLog(const TensorBoardLog&) = delete;
  TensorBoardLog& operator=(const TensorBoardLog&) = delete;
  /// Appends the numbers of a line of metrics.jsonl, at once; what is no number is left out.
  void append(int64_t step, const MetricFields& fields);

 private:
  std::shared_ptr<data::OutputFile> file_;
  std::shared_ptr<EventWriter> writer_;
};

}  // namespace cinta::train
