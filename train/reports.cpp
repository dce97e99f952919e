// What the callbacks hand on, and when.
#include "cinta/train/reports.h"

#include <filesystem>

#include "cinta/data/atomic_file.h"
#include "cinta/train/loop.h"
#include "cinta/train/tensorboard.h"
#include "cinta/train/trace.h"

namespace cinta::train {

void TensorBoardReport::on_train_begin(const Moment& now) {
  if (!now.options.output_dir.empty()) log_ = std::make_shared<TensorBoardLog>(now.options.output_dir, now.state.step);
}
void TensorBoardReport::on_log(const Moment& now, const MetricFields& fields) {
  if (log_) log_->append(now.state.step, fields);
}
void TensorBoardReport::on_evaluate(const Moment& now, const MetricFields& fields) { on_log(now, fields); }

TraceReport::TraceReport(std::string path, int64_t first, int64_t last, Where where)
    : path_(std::move(path)), first_(first), last_(last), where_(where) {
  require(1 <= first && first <= last, "trace", where,
          "steps are counted from 1, the first is not after the last: ", first, ":", last);
}

void TraceReport::on_check(const Moment& now) {
  require(first_ <= now.options.max_steps, "trace", where_, "the steps ", first_, ":", last_,
          " are done by the run, whose last is ", now.options.max_steps);
  require<FileError>(!std::filesystem::is_directory(path_), "trace", where_, path_, ": is a directory");
  const auto place = [](const std::string& path) { return std::filesystem::weakly_canonical(path); };
  const std::string& run = now.options.output_dir;  // which is made, or emptied, before the run begins
  if (run.empty() || place(path_).parent_path() != place(run))
    data::AtomicFile(path_, where_);  // better now than after the steps; leaves nothing
}

void TraceReport::on_train_begin(const Moment& now) {
  require(last_ > now.state.step, "trace", where_, "the steps ", first_, ":", last_,
          " are still to come; the resumed run has done ", now.state.step);
  data::AtomicFile(path_, where_);  // in the run's directory, which is there now
  trace_ = std::make_shared<Trace>();
}

void TraceReport::on_step_begin(const Moment& now) {
  const int64_t step = now.state.step + 1;
  if (trace_ && first_ <= step) trace_->start(join("step ", step));
}

void TraceReport::on_step_end(const Moment& now) {
  if (!trace_) return;
  trace_->stop();
  if (now.state.step == last_) on_train_end(now);
}

void TraceReport::on_train_end(const Moment&) {
  if (!trace_) return;
  trace_->write(path_, where_);
  trace_.reset();
}

}  // namespace cinta::train
