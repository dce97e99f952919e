// metrics.jsonl: the numbers of a run, one JSON object a line, each line in the file as soon as it is known.
// The first line describes the run; every other one begins with its step. NaN and infinities, which JSON lacks, are the
// strings "NaN", "Inf" and "-Inf".
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cinta/core/error.h"
#include "cinta/data/atomic_file.h"

namespace cinta::train {

/// A float keeps its own shortest spelling (0.1f is written 0.1).
using MetricValue = std::variant<bool, int64_t, float, double, std::string, uint64_t>;
using MetricFields = std::vector<std::pair<std::string, MetricValue>>;

/// The number called `name`; NaN when there is none.
double number(const MetricFields& fields, std::string_view name);

/// One JSON object in one line, in the order of `fields`. Throws ValueError where a field is given twice.
std::string json_of(const MetricFields& fields, Where where = Where::current());

/// Throws ValueError naming each difference where the header of the file in `path` is not `header`: another run.
void require_header(const std::string& path, const MetricFields& header, Where where = Where::current());

/// Appends to metrics.jsonl.
class MetricsLog {
 public:
  MetricsLog(MetricsLog&&) = default;  // one writes
  MetricsLog& operator=(MetricsLog&&) = default;
  /// Begins the file anew; `header` is its first line.
  static MetricsLog create(const std::string& path, const MetricFields& header, Where where = Where::current());
  /// Goes on with the file of a run resumed after `step`: lines of later steps, and a last line that was not written
  /// to its end, are cut off, so that the file becomes that of a run never interrupted. Throws FileError where a line
  /// before that is damaged, ValueError as require_header(). With `evaluation_due` so is what an evaluation of that
  /// very step wrote.
  static MetricsLog resume(const std::string& path, const MetricFields& header, int64_t step,
                           bool evaluation_due = false, Where where = Where::current());

  /// One line. Steps never fall. Throws FileError (disk full), ValueError (a field named twice, or named step).
  void append(int64_t step, const MetricFields& fields, Where where = Where::current());
  /// Returns once all lines are on the disk; a checkpoint is written after this.
  void sync() { file_->sync(); }

 private:
  MetricsLog(std::shared_ptr<data::OutputFile> file, int64_t step) : file_(std::move(file)), last_step_(step) {}
  std::shared_ptr<data::OutputFile> file_;
  int64_t last_step_;
};

struct MetricsRecord {
  int64_t step;
  MetricFields fields;
};

/// The points (step, value) of one number, in the order of the file.
struct MetricSeries {
  std::vector<double> steps;
  std::vector<double> values;
};

struct MetricsFile {
  MetricFields header;
  std::vector<MetricsRecord> records;

  /// Every record that has a number called `name`; NaN and infinities are what they were.
  MetricSeries series(std::string_view name) const;
};

/// Whether a step was written to the file; no more of it is looked at. False where there is none.
bool has_steps(const std::string& path, Where where = Where::current());

/// Reads the file; a last line without its end (a run in progress) is left out. Throws FileError naming file and line.
MetricsFile read_metrics(const std::string& path, Where where = Where::current());

/// Now, as the logs that have times tell it.
double seconds_since_1970();

}  // namespace cinta::train
