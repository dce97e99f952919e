// Callbacks: each event at its time, what they ask for is done, and what they keep survives an interruption.
#include "cinta/train/callbacks.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "cinta/core/context.h"
#include "cinta/train/checkpoint_directory.h"
#include "data_helpers.h"
#include "train_helpers.h"

using namespace cinta;
using namespace cinta::testing;
using train::Moment;
using train::RunOptions;
using train::RunResult;

namespace {

/// Writes down every event.
struct Witness : train::TrainerCallback {
  void on_train_begin(const Moment&) override { seen += "begin "; }
  void on_epoch_begin(const Moment&) override { seen += "( "; }
  void on_step_begin(const Moment& now) override { seen += std::to_string(now.state.step) + ":"; }
  void on_substep_end(const Moment&) override { seen += "b"; }
  void on_pre_optimizer_step(const Moment&) override { seen += "p"; }
  void on_step_end(const Moment&) override { seen += "s "; }
  void on_epoch_end(const Moment&) override { seen += ") "; }
  void on_log(const Moment&, const train::MetricFields&) override { seen += "log "; }
  void on_evaluate(const Moment&, const train::MetricFields&) override { seen += "eval "; }
  void on_save(const Moment&, const std::string& path) override { seen += path.substr(path.rfind('/') + 1) + " "; }
  void on_train_end(const Moment&) override { seen += "end"; }
  std::string seen;
};

/// A task whose evaluations are told beforehand.
struct Scripted : ForwardingTask {
  Scripted(train::Task& task, std::vector<double> losses) : ForwardingTask(task), losses(std::move(losses)) {}
  train::Forward forward(const data::Batch& batch) override {
    steps.push_back(batch.step);
    return task.forward(batch);
  }
  train::MetricFields evaluate_until(train::StopFlag) override {
    const double loss = losses[std::min(evaluations++, losses.size() - 1)];
    return {{"eval_loss", loss}, {"eval_accuracy", -loss}};
  }
  std::vector<double> losses;
  size_t evaluations = 0;
  std::vector<int64_t> steps;
};

/// A run of `steps` steps that evaluates every second one.
RunOptions short_run(const std::string& directory, int64_t steps) {
  RunOptions options = small_run(directory);
  options.accumulation_steps = 1;
  options.max_steps = steps;
  options.logging_steps = 100;
  options.eval_steps = 2;
  return options;
}

std::vector<std::string> names(const std::string& directory) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) out.push_back(entry.path().filename());
  std::ranges::sort(out);
  return out;
}

std::string link(const std::string& path) { return std::filesystem::read_symlink(path).string(); }

}  // namespace

TEST_CASE("every event comes at its time", "[train_callbacks]") {
  const Scratch scratch;
  auto task = small_classifier();  // ten batches an epoch
  RunOptions options = small_run(scratch / "run");
  options.max_steps = 7;
  options.save_each_epoch = true;
  options.eval_steps = 5;
  const auto witness = std::make_shared<Witness>();
  options.callbacks = {witness};
  train::run(task, options, small_header);
  CHECK(witness->seen ==
        "begin ( 0:bbbps 1:bbbps 2:bbbps 3:bbbps ) log checkpoint-4 ( 4:bbbps eval 5:bbbps 6:bbbps ) log "
        "eval checkpoint-7 end");
}

TEST_CASE("what micro-batches leave is counted, and does not add up while nothing is logged", "[train_callbacks]") {
  struct Witness : train::TrainerCallback {
    void on_step_end(const Moment& now) override {
      if (now.state.step == 100 || now.state.step == 612) live.push_back(memory_statistics(cpu).live_total);
    }
    void on_log(const Moment&, const train::MetricFields& fields) override {
      losses.push_back(train::number(fields, "loss"));
    }
    std::vector<int64_t> live;
    std::vector<double> losses;
  };
  const auto run_logging_each = [](int64_t steps) {
    const auto witness = std::make_shared<Witness>();
    auto task = small_classifier();
    RunOptions options = short_run("", 620);
    options.logging_steps = steps;
    options.eval_steps = 0;
    options.callbacks = {witness};
    train::run(task, options, small_header);
    return witness;
  };
  const auto seldom = run_logging_each(1000), often = run_logging_each(1);
  REQUIRE(seldom->live.size() == 2);
  CHECK(seldom->live[1] - seldom->live[0] < 100 * 1024);  // of 512 micro-batches, each of which leaves 1 KiB
  REQUIRE(seldom->losses.size() == 1);
  REQUIRE(often->losses.size() == 620);
  const double mean = std::accumulate(often->losses.begin(), often->losses.end(), 0.0) / 620;
  CHECK(seldom->losses[0] == Approx(mean).epsilon(1e-12));  // batches are of one size
}

TEST_CASE("what a callback asks for is done", "[train_callbacks]") {
  struct Asking : train::TrainerCallback {
    void on_step_end(const Moment& now) override {
      now.control.save = now.state.step == 2;
      now.control.evaluate = now.state.step == 3;
      now.control.stop = now.state.step == 4;
    }
  };
  const Scratch scratch;
  auto task = small_classifier();
  RunOptions options = short_run(scratch / "run", 9);
  options.eval_steps = 0;
  const auto witness = std::make_shared<Witness>();
  options.callbacks = {std::make_shared<Asking>(), witness};
  CHECK(train::run(task, options, small_header).steps == 4);
  CHECK(witness->seen == "begin ( 0:bps 1:bps checkpoint-2 2:bps eval 3:bps log eval checkpoint-4 end");
}

TEST_CASE("the rest of an epoch is passed over, also by a run that is resumed", "[train_callbacks]") {
  struct Impatient : train::TrainerCallback {
    explicit Impatient(bool at_evaluation) : at_evaluation(at_evaluation) {}
    void on_step_end(const Moment& now) override { now.control.stop_epoch = !at_evaluation && now.state.step % 2 == 0; }
    void on_evaluate(const Moment& now, const train::MetricFields&) override {
      now.control.stop_epoch = at_evaluation && now.state.step % 2 == 0;
    }
    bool at_evaluation;
  };
  const bool at_evaluation = GENERATE(false, true);
  const Scratch scratch;
  auto inner = small_classifier();  // ten batches an epoch
  Scripted task(inner, {1});
  RunOptions options = short_run(scratch / "whole", 6);
  options.eval_steps = at_evaluation ? 2 : 0;
  options.save_steps = 2;
  const auto witness = std::make_shared<Witness>();
  options.callbacks = {std::make_shared<Impatient>(at_evaluation), witness};
  train::run(task, options, small_header);
  CHECK(task.steps == std::vector<int64_t>{0, 1, 10, 11, 20, 21});
  CHECK(witness->seen == (at_evaluation ? "begin ( 0:bps 1:bps eval ) checkpoint-2 ( 2:bps 3:bps eval ) checkpoint-4 ( "
                                          "4:bps 5:bps log eval checkpoint-6 end"
                                        : "begin ( 0:bps 1:bps ) checkpoint-2 ( 2:bps 3:bps ) checkpoint-4 ( "
                                          "4:bps 5:bps log ) eval checkpoint-6 end"));

  options.output_dir = scratch / "parts";
  options.callbacks.pop_back();
  for (const int64_t forwards : {2, 3, 100}) {  // stopped where the first epoch is cut, in the second, then not
    auto part = small_classifier();
    StoppingTask stopping(part, forwards);
    Scripted scripted(stopping, {1});
    options.stop = &stopping.stop;
    train::run(scripted, options, small_header);
    options.resume = true;
  }
  CHECK(differing(left_behind(scratch / "whole", 6), left_behind(scratch / "parts", 6)).empty());
}

TEST_CASE("a line after the first step, where it is asked for", "[train_callbacks]") {
  const Scratch scratch;
  auto task = small_classifier();
  RunOptions options = short_run(scratch / "run", 4);
  options.logging_first_step = true;
  options.logging_steps = 3;
  options.eval_steps = 0;
  train::run(task, options, small_header);
  CHECK(train::read_metrics(scratch / "run/metrics.jsonl").series("loss").steps == std::vector<double>{1, 3, 4});
}

TEST_CASE("a metric is better by more than a margin, and NaN never is", "[train_callbacks]") {
  const train::WatchedMetric loss{"eval_loss", false}, accuracy{"eval_accuracy", true};
  CHECK(loss.better(1, NAN));
  CHECK(loss.better(1, 2));
  CHECK_FALSE(loss.better(2, 2));
  CHECK_FALSE(loss.better(1.5, 2, 0.5));
  CHECK(loss.better(1.25, 2, 0.5));
  CHECK_FALSE(loss.better(NAN, 2));
  CHECK_FALSE(loss.better(NAN, NAN));
  CHECK(accuracy.better(2, 1));
  CHECK_FALSE(accuracy.better(1, 2));
  CHECK(error_of<ValueError>([&] {
          train::WatchedMetric{"f1"}.in({{"eval_loss", 1.0}});
        }).find("the evaluation has no 'f1' to watch; it has eval_loss") != std::string::npos);
}

TEST_CASE("the best checkpoint is kept, named and loaded", "[train_callbacks]") {
  const Scratch scratch;
  auto inner = small_classifier();
  Scripted task(inner, {5, 3, 4, 4, 6});
  RunOptions options = short_run(scratch / "run", 10);
  options.save_steps = 1;
  options.callbacks = {
      std::make_shared<train::BestCheckpoint>(train::BestCheckpoint::Options{{}, 2, true, /*load_at_end=*/true})};
  const RunResult result = train::run(task, options, small_header);
  CHECK(result.steps == 10);
  CHECK(result.checkpoint == scratch / "run/checkpoint-4");
  CHECK(names(scratch / "run") ==
        std::vector<std::string>{"best", "checkpoint-10", "checkpoint-4", "last", "metrics.jsonl"});
  CHECK(link(scratch / "run/best") == "checkpoint-4");
  CHECK(link(scratch / "run/last") == "checkpoint-10");
  CHECK(task.evaluations == 6);  // the best model's own figures are the run's
  CHECK(train::number(result.evaluation, "eval_loss") == 6);
  auto best = small_classifier();
  best.load(scratch / "run/checkpoint-4");
  for (size_t i = 0; i < best.model().parameters().size(); ++i)
    CHECK(to_vector<float>(inner.model().parameters()[i].tensor) ==
          to_vector<float>(best.model().parameters()[i].tensor));
  CHECK(train::checkpoint_fault(scratch / "run/best").empty());
}

TEST_CASE("a limit on checkpoints saves none that would not be, and a new run removes what names the old",
          "[train_callbacks]") {
  const Scratch scratch;
  auto inner = small_classifier();
  Scripted task(inner, {5, 3, 4});
  RunOptions options = short_run(scratch / "run", 9);
  options.save_steps = 4;
  options.callbacks = {
      std::make_shared<train::BestCheckpoint>(train::BestCheckpoint::Options{{}, 3, /*save_best=*/false, false})};
  train::run(task, options, small_header);
  CHECK(names(scratch / "run") ==
        std::vector<std::string>{"best", "checkpoint-4", "checkpoint-8", "checkpoint-9", "last", "metrics.jsonl"});
  options.callbacks.clear();
  options.schedule = {};
  write_bytes(scratch / "run/tokenizer.json", "{}");  // of the old run's model, as transformers would put it there
  options.overwrite = true;
  options.max_steps = 2;
  train::run(task, options, small_header);
  CHECK(names(scratch / "run") == std::vector<std::string>{"checkpoint-2", "metrics.jsonl"});
}

TEST_CASE("numbers that JSON lacks come back from a checkpoint", "[train_callbacks]") {
  struct Keeping : train::TrainerCallback {
    void on_train_begin(const Moment& now) override { found = now.state; }
    void on_step_end(const Moment& now) override {
      now.state.keep("d", 0.1);
      for (const char* name : {"c", "b", "a"}) now.state.keep(name, 1);
      now.state.keep("a", INFINITY);
      now.state.keep("b", -INFINITY);
      now.state.keep("c", NAN);
    }
    train::RunState found;
  };
  const Scratch scratch;
  for (int64_t steps : {2, 3}) {
    auto task = small_classifier();
    RunOptions options = short_run(scratch / "run", steps);
    options.schedule = {};
    options.resume = true;
    const auto keeping = std::make_shared<Keeping>();
    options.callbacks = {keeping};
    train::run(task, options, small_header);
    if (steps == 2) continue;
    REQUIRE(keeping->found.numbers.size() == 4);
    CHECK(keeping->found.number("a") == INFINITY);
    CHECK(keeping->found.number("b") == -INFINITY);
    CHECK(std::isnan(keeping->found.number("c")));
    CHECK(keeping->found.number("d") == 0.1);
    CHECK(std::isnan(keeping->found.number("e")));
  }
}

TEST_CASE("a run stops when it no longer gets better, and stays stopped", "[train_callbacks]") {
  const Scratch scratch;
  auto options = [&] {
    RunOptions out = short_run(scratch / "run", 30);
    out.callbacks = {std::make_shared<train::EarlyStopping>(train::EarlyStopping::Options{{}, 3, 0.5})};
    return out;
  };
  auto inner = small_classifier();
  Scripted task(inner, {5, 4, 3.75, 3.6, NAN, 1});  // two steps each; 4 is the last that is better by enough
  CHECK(train::run(task, options(), small_header).steps == 10);
  const auto before = left_behind(scratch / "run", 10);
  RunOptions again = options();
  again.resume = true;
  auto other = small_classifier();
  Scripted resumed(other, {1});
  CHECK(train::run(resumed, again, small_header).steps == 10);
  CHECK(differing(before, left_behind(scratch / "run", 10)) == std::vector<std::string>{});
  CHECK(error_of<ValueError>([] {
          train::EarlyStopping({{}, 0, 0});
        }).find("patience is positive") != std::string::npos);
}

TEST_CASE("waiting and the best are part of a checkpoint", "[train_callbacks]") {
  const Scratch scratch;
  const std::vector<double> losses{5, 4, 4.5, 4.25, 3, 3.5, 3.6, 3.7, 2};
  auto options = [&](const std::string& directory, int64_t steps) {
    RunOptions out = short_run(directory, steps);
    out.schedule.total = 30;
    out.callbacks = {std::make_shared<train::BestCheckpoint>(train::BestCheckpoint::Options{{}, 1, true, false}),
                     std::make_shared<train::EarlyStopping>(train::EarlyStopping::Options{{}, 3, 0})};
    return out;
  };
  auto first = small_classifier();
  Scripted whole(first, losses);
  CHECK(train::run(whole, options(scratch / "whole", 30), small_header).steps == 16);

  struct StopAt : train::TrainerCallback {
    explicit StopAt(volatile std::sig_atomic_t& flag) : flag(flag) {}
    void on_step_end(const Moment& now) override {
      if (now.state.step == 13) flag = SIGTERM;
    }
    volatile std::sig_atomic_t& flag;
  };
  volatile std::sig_atomic_t stop = 0;
  auto second = small_classifier();
  Scripted part(second, losses);
  RunOptions stopped = options(scratch / "parts", 30);
  stopped.stop = &stop;
  stopped.callbacks.push_back(std::make_shared<StopAt>(stop));
  CHECK(train::run(part, stopped, small_header).steps == 13);
  stop = 0;
  RunOptions resumed = options(scratch / "parts", 30);
  resumed.resume = true;
  auto third = small_classifier();
  Scripted rest(third, {losses.begin() + 6, losses.end()});
  CHECK(train::run(rest, resumed, small_header).steps == 16);
  CHECK(differing(left_behind(scratch / "whole", 16), left_behind(scratch / "parts", 16)) ==
        std::vector<std::string>{});
  CHECK(names(scratch / "whole") == names(scratch / "parts"));
  CHECK(link(scratch / "parts/best") == "checkpoint-10");
}

TEST_CASE("a run on few batches sees no others and learns them", "[train_callbacks]") {
  auto inner = small_classifier();
  Scripted task(inner, {1});
  RunOptions options = short_run("", 150);
  options.overfit_batches = 2;
  options.schedule = {};
  const RunResult result = train::run(task, options, small_header);
  CHECK(result.loss < 0.3);
  CHECK(std::ranges::all_of(task.steps, [](int64_t step) { return step < 2; }));
  CHECK(task.steps.size() == 150);
}

TEST_CASE("a second run in the directory of one at work is refused and harms nothing", "[train_callbacks]") {
  const Scratch scratch;
  struct Intruder : train::TrainerCallback {
    void on_step_end(const train::Moment& now) override {
      RunOptions options = now.options;
      options.callbacks.clear();
      auto task = small_classifier();
      for (bool resume : {true, false}) {
        options.resume = resume;
        options.overwrite = !resume;
        errors.push_back(error_of<FileError>([&] { train::run(task, options, small_header); }));
      }
    }
    std::vector<std::string> errors;
  };
  RunOptions options = small_run(scratch / "run");
  options.max_steps = 6;
  auto alone = small_classifier(), disturbed = small_classifier();
  options.output_dir = scratch / "alone";
  train::run(alone, options, small_header);
  const auto intruder = std::make_shared<Intruder>();
  options.callbacks = {intruder};
  options.output_dir = scratch / "run";
  train::run(disturbed, options, small_header);
  REQUIRE(intruder->errors.size() == 12);
  for (const std::string& error : intruder->errors)
    CHECK(error.find("/run: another process is at work here") != std::string::npos);
  CHECK(differing(left_behind(scratch / "alone", 6), left_behind(scratch / "run", 6)) == std::vector<std::string>{});
}
