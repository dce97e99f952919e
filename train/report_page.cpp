// When the page is written, and from what.
#include "cinta/train/report_page.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>

#include "cinta/autograd/mode.h"
#include "cinta/core/context.h"
#include "cinta/data/atomic_file.h"
#include "cinta/train/exponents.h"
#include "cinta/train/loop.h"
#include "cinta/train/machine.h"
#include "cinta/train/readable.h"
#include "cinta/train/report_sections.h"
#include "cinta/train/timing.h"

namespace cinta::train {
namespace {

constexpr int64_t watched_step = 3;  // of this process: memory and plans are made in the first

std::string model_text(const ReportRun& run, const models::Module& model) {
  std::string out;
  for (const auto& [name, value] : run.metrics.header)
    if (const auto* task = std::get_if<std::string>(&value); task && name == "task") out = *task + ", ";
  return out + whole_count(model.parameter_count()) + " parameters";
}

}  // namespace

class ReportPage::Page {
 public:
  Page(const Moment& now, const Options& options)
      : options_(options),
        watcher_(autograd::mode().observer),
        watch_from_(std::min(now.state.step + watched_step, now.options.max_steps)) {
    run_.directory = now.options.output_dir;
    run_.command = options.command;
    run_.unit = now.task.progress_unit();
    run_.machine = machine_text();
    run_.max_steps = now.options.max_steps;
    attempt([&] { run_.metrics = read_metrics(run_.directory + "/metrics.jsonl"); });
    run_.model = model_text(run_, now.task.model());
    attempt([&] { open_times(now.state.step); });
    write(now);
  }
  /// A run that has not come to its end has thrown.
  ~Page() {
    if (run_.state != ReportRun::State::running) return;
    run_.state = ReportRun::State::failed;
    run_.note = join("It ended with an error after step ", run_.step);
    write_now();
  }

  void begin_step(const Moment& now) {
    if (!watched_ && now.state.step + 1 >= watch_from_ && autograd::mode().observer == watcher_)
      profiler_.emplace(now.task.model(), now.state.step + 1);
    step_begin_ = seconds();
  }

  void end_step(const Moment& now) {
    busy_ += seconds() - step_begin_;
    run_.step = now.state.step;
    if (!profiler_) return;
    attempt([&] { run_.profile = report_profile(profiler_->finish()); });
    profiler_.reset();
    watched_ = true;
    write(now);
  }

  void log(const Moment& now, const MetricFields& fields) {
    const int64_t steps = now.state.step - last_step_;
    const double items = now.result.items - last_items_, seconds = busy_ - last_busy_;
    if (times_ && steps > 0 && seconds > 0) {
      seconds_ += seconds;
      const std::vector<optim::Parameter> parameters = now.task.model().parameters();
      const Device device = parameters.empty() ? cpu : parameters.front().tensor.device();
      const MetricFields line{{"time", seconds_since_1970()},
                              {"seconds", seconds_},
                              {"step_ms", 1e3 * seconds / static_cast<double>(steps)},
                              {"items_per_second", items / seconds},
                              {"peak_bytes", memory_statistics(device).peak_total}};
      run_.times.records.push_back({now.state.step, line});
      attempt([&] { times_->append(now.state.step, line); });
    }
    last_step_ = now.state.step;
    last_items_ = now.result.items;
    last_busy_ = busy_;
    add(now, fields);
  }

  void add(const Moment& now, const MetricFields& fields) {
    run_.metrics.records.push_back({now.state.step, fields});
    if (seconds() - last_written_ >= std::max(options_.seconds_between, last_cost_ / options_.greatest_share))
      write(now);
  }

  void end(const Moment& now) {
    const int64_t step = now.state.step;
    if (const int signal = now.result.stopped_by) {
      run_.state = ReportRun::State::stopped;
      run_.note = join(signal == SIGINT    ? "SIGINT"
                       : signal == SIGTERM ? "SIGTERM"
                                           : join("Signal ", signal),
                       " stopped it; resumed it goes on after step ", step);
    } else if (now.result.pruned) {
      run_.state = ReportRun::State::stopped;
      run_.note = join("A search gave it up after step ", step);
    } else {
      run_.state = ReportRun::State::finished;
      if (step < now.options.max_steps) run_.note = join("Stopped early, after step ", step);
    }
    write(now);
  }

 private:
  /// Does what may fail without harm to the training; the first failure is told.
  template <class Work>
  void attempt(Work work) {
    try {
      work();
    } catch (const Error& error) {
      tell_once(std::string(error.text()));
    } catch (const std::exception& error) {
      tell_once(error.what());
    }
  }
  void tell_once(const std::string& failure) {
    if (!std::exchange(told_, true))
      std::fprintf(stderr, "the report is not complete, the training goes on: %s\n", failure.c_str());
  }

  void open_times(int64_t step) {
    const std::string path = run_.directory + "/times.jsonl";
    const MetricFields header{{"items", run_.unit}};
    last_step_ = run_.step = step;
    if (step > 0 && std::filesystem::exists(path)) {
      times_ = MetricsLog::resume(path, header, step);
      run_.times = read_metrics(path);
      if (!run_.times.records.empty()) seconds_ = number(run_.times.records.back().fields, "seconds");
    } else {
      times_ = MetricsLog::create(path, header);
    }
  }

  void write(const Moment& now) {
    run_.step = now.state.step;
    run_.epoch = now.epoch;
    for (const auto& callback : now.options.callbacks)
      if (const auto* exponents = dynamic_cast<const ExponentReport*>(callback.get()))
        if (!exponents->steps().empty()) run_.exponents = svg_of(exponents->steps());
    write_now();
  }

  void write_now() {
    const double begin = seconds();
    run_.written = seconds_since_1970();
    attempt([&] {
      data::AtomicFile file(run_.directory + "/report.html");
      file.write_text(report_document(run_));
      file.commit();
    });
    last_cost_ = seconds() - begin;
    last_written_ = seconds();
  }

  ReportRun run_;
  Options options_;
  autograd::Observer* watcher_;  ///< who watches all the time
  int64_t watch_from_;
  bool watched_ = false, told_ = false;
  std::optional<StepProfiler> profiler_;  ///< during the watched step
  std::optional<MetricsLog> times_;
  double seconds_ = 0;  ///< of training, up to the last log
  double busy_ = 0, last_busy_ = 0, last_items_ = 0, last_cost_ = 0;
  double step_begin_ = 0, last_written_ = 0;
  int64_t last_step_ = 0;
};

ReportPage::ReportPage() = default;
ReportPage::ReportPage(Options options) : options_(std::move(options)) {}
ReportPage::~ReportPage() = default;

void ReportPage::on_train_begin(const Moment& now) {
  page_.reset();
  if (!now.options.output_dir.empty()) page_ = std::make_shared<Page>(now, options_);
}
void ReportPage::on_step_begin(const Moment& now) {
  if (page_) page_->begin_step(now);
}
void ReportPage::on_step_end(const Moment& now) {
  if (page_) page_->end_step(now);
}
void ReportPage::on_log(const Moment& now, const MetricFields& fields) {
  if (page_) page_->log(now, fields);
}
void ReportPage::on_evaluate(const Moment& now, const MetricFields& fields) {
  if (page_) page_->add(now, fields);
}
void ReportPage::on_train_end(const Moment& now) {
  if (page_) page_->end(now);
  page_.reset();
}

}  // namespace cinta::train
