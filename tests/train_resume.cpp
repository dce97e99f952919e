// What a resumed run says and decides: evaluations that are known, another number to watch, the precision of the best.
#include <catch2/catch.hpp>

#include "cinta/train/callbacks.h"
#include "cinta/train/precision.h"
#include "data_helpers.h"
#include "train_helpers.h"

using namespace cinta;
using namespace cinta::testing;
using train::BestCheckpoint;
using train::RunOptions;
using train::RunResult;

TEST_CASE("a signal in the evaluation of a finished run that is resumed loses no line", "[train]") {
  struct StoppedEvaluation : ForwardingTask {
    using ForwardingTask::ForwardingTask;
    train::MetricFields evaluate_until(train::StopFlag) override {
      stop = SIGINT;
      return {};
    }
    volatile std::sig_atomic_t stop = 0;
  };
  const Scratch scratch;
  RunOptions options = small_run(scratch / "run");
  auto first = small_classifier();
  train::run(first, options, small_header);
  const auto before = left_behind(options.output_dir);
  options.resume = true;
  auto second = small_classifier();
  StoppedEvaluation stopped(second);
  RunOptions interrupted = options;
  interrupted.stop = &stopped.stop;
  CHECK(train::run(stopped, interrupted, small_header).stopped_by == SIGINT);
  auto third = small_classifier();
  train::run(third, options, small_header);
  CHECK(differing(before, left_behind(options.output_dir)) == Names{});
}

TEST_CASE("a resumed run watches the number that its best was found by", "[train]") {
  struct Rising : ForwardingTask {
    using ForwardingTask::ForwardingTask;
    train::MetricFields evaluate_until(train::StopFlag) override {
      evaluations += 1;
      return {{"eval_loss", 5 - 0.1 * evaluations}, {"eval_accuracy", 0.1 * evaluations}};
    }
    double evaluations = 0;
  };
  const Scratch scratch;
  auto inner = small_classifier();
  Rising task(inner);
  const auto best_after = [&](int64_t steps, const train::WatchedMetric& metric) {
    RunOptions options = small_run(scratch / "run");
    options.max_steps = steps;
    options.schedule.total = 8;
    options.eval_steps = 2;
    options.resume = steps > 4;
    options.quiet = true;
    options.callbacks = {std::make_shared<BestCheckpoint>(BestCheckpoint::Options{metric, 0, true, true})};
    return train::run(task, options, small_header).checkpoint;
  };
  CHECK(best_after(4, {"eval_accuracy", true}) == scratch / "run/checkpoint-4");
  CHECK(best_after(6, {"eval_accuracy", true}) == scratch / "run/checkpoint-6");
  for (const train::WatchedMetric& other : {train::WatchedMetric{"eval_loss", false}, {"eval_accuracy", false}})
    CHECK(error_of<ValueError>([&] { best_after(8, other); }).find("[resume] the metric_for_best_model") !=
          std::string::npos);
  CHECK(best_after(8, {"eval_accuracy", true}) == scratch / "run/checkpoint-8");
}

TEST_CASE("the best weights are evaluated in the run's precision", "[train]") {
  for (const char* precision : {"bf16", "fp8"}) {
    const Scratch scratch;
    auto task = small_classifier();
    RunOptions options = small_run(scratch / "run");
    options.max_steps = 6;
    options.autocast = train::parse_precision(precision);
    options.callbacks = {std::make_shared<BestCheckpoint>(BestCheckpoint::Options{{}, 0, true, true})};
    const RunResult result = train::run(task, options, small_header);
    CHECK(read_bytes(scratch / "run/metrics.jsonl")
              .find(train::json_of({{"eval_loss", train::number(result.evaluation, "eval_loss")}}).substr(1, 24)) !=
          std::string::npos);
  }
}

TEST_CASE("the rest of an epoch is not passed over where batches count none", "[train]") {
  struct Stream : data::BatchSource {
    explicit Stream(const data::BatchSource& source) : source(source) {}
    data::Batch batch(int64_t index) const override { return source.batch(index); }
    const data::BatchSource& source;
  };
  struct Endless : ForwardingTask {
    explicit Endless(train::Task& task) : ForwardingTask(task), stream(task.batches()) {}
    const data::BatchSource& batches() const override { return stream; }
    Stream stream;
  };
  struct Impatient : train::TrainerCallback {
    void on_step_end(const train::Moment& now) override { now.control.stop_epoch = true; }
  };
  auto inner = small_classifier();
  Endless task(inner);
  RunOptions options = small_run("");
  options.callbacks = {std::make_shared<Impatient>()};
  CHECK(error_of<ValueError>([&] {
          train::run(task, options, small_header);
        }).find("batches that count their epochs") != std::string::npos);
}
