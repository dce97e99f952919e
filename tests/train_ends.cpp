// Runs that end before their time, or leave nothing: signals in an evaluation, weights that are no numbers, short
// tries.
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/train/callbacks.h"
#include "cinta/train/checkpoint_directory.h"
#include "cinta/train/loop.h"
#include "data_helpers.h"
#include "train_helpers.h"

using namespace cinta;
using namespace cinta::testing;
using train::RunOptions;
using train::RunResult;

namespace {

/// Raises its flag at the beginning of an evaluation.
struct InterruptedEvaluation : ForwardingTask {
  InterruptedEvaluation(train::Task& task, int evaluations) : ForwardingTask(task), left(evaluations) {}
  train::MetricFields evaluate_until(train::StopFlag) override {
    if (--left == 0) stop = SIGINT;
    return task.evaluate_until(&stop);
  }
  int left;
  volatile std::sig_atomic_t stop = 0;
};

}  // namespace

// The step of the evaluation is one that is saved, and the run that makes up for it is broken off as well.
TEST_CASE("a signal breaks an evaluation off, which the resumed run makes up for", "[train]") {
  struct Failing : train::TrainerCallback {
    void on_evaluate(const train::Moment&, const train::MetricFields&) override { throw ValueError("as if killed"); }
  };
  const Scratch scratch;
  auto options_for = [&](const std::string& name) {
    RunOptions out = small_run(scratch / name);
    out.save_steps = 6;
    out.callbacks = {std::make_shared<train::BestCheckpoint>(train::BestCheckpoint::Options{.save_best = false})};
    return out;
  };
  auto whole = small_masked();
  train::run(whole, options_for("whole"), small_header);
  for (const auto& [evaluation, steps] : {std::pair{2, 12}, std::pair{5, 30}}) {  // on the way, and the last
    INFO("evaluation " << evaluation);
    RunOptions options = options_for(std::to_string(steps));
    auto inner = small_masked();
    InterruptedEvaluation part(inner, evaluation);
    options.stop = &part.stop;
    const RunResult result = train::run(part, options, small_header);
    CHECK(result.stopped_by == SIGINT);
    CHECK(result.steps == steps);
    CHECK(result.evaluation.empty());
    CHECK(part.left == 0);
    CHECK(std::filesystem::exists(result.checkpoint));
    options.stop = {};
    options.resume = true;
    options.callbacks.push_back(std::make_shared<Failing>());
    auto failing = small_masked();
    CHECK_THROWS_AS(train::run(failing, options, small_header), ValueError);
    options.callbacks.pop_back();
    auto rest = small_masked();
    CHECK(!train::run(rest, options, small_header).evaluation.empty());
    CHECK(differing(left_behind(scratch / "whole"), left_behind(options.output_dir)) == Names{});
    CHECK(std::filesystem::read_symlink(options.output_dir + "/best") ==
          std::filesystem::read_symlink(scratch / "whole/best"));
  }
}

TEST_CASE("weights that are no numbers take no checkpoint's place", "[train]") {
  struct Spoiling : train::TrainerCallback {
    void on_step_end(const train::Moment& now) override {
      if (now.state.step == 3) kernels::fill(cpu, now.task.model().parameters()[1].tensor, -INFINITY);
    }
  };
  const Scratch scratch;
  RunOptions options = small_run(scratch / "run");
  options.save_steps = 1;
  options.callbacks = {std::make_shared<Spoiling>()};
  auto task = small_classifier();
  const std::string name = task.model().parameters()[1].name;
  const std::string error = error_of<ValueError>([&] { train::run(task, options, small_header); });
  CHECK(error.find("after step 3 the weight " + name + " holds NaN or infinity; it is not saved") != error.npos);
  CHECK(train::checkpoint_fault(scratch / "run/checkpoint-2").empty());
  CHECK(!std::filesystem::exists(scratch / "run/checkpoint-3"));
}

TEST_CASE("a short try of everything leaves nothing", "[train]") {
  const Scratch scratch;
  auto task = small_classifier();
  const RunResult result = train::run(task, train::fast_dev_run(small_run(scratch / "run"), 2), small_header);
  CHECK(result.steps == 2);
  CHECK(!result.evaluation.empty());
  CHECK(!std::filesystem::exists(scratch / "run"));
}
