// Every precision with everything that it composes with: recomputed = stored and resumed = uninterrupted, bit for bit,
// and losses near those of fp32.
#include "cinta/train/precision.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/train/metrics.h"
#include "data_helpers.h"
#include "train_helpers.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

constexpr int64_t steps = 12, stop_at = 5;

struct Mode {
  std::string precision, checkpointing = "none";
  int64_t micro_batches = 1;
  std::string loss_scale = "1";
};

train::RunOptions options_of(const Mode& mode, const std::string& directory) {
  train::RunOptions options = small_run(directory);
  options.max_steps = steps;
  options.accumulation_steps = mode.micro_batches;
  options.autocast = train::parse_precision(mode.precision);
  options.loss_scale = optim::parse_loss_scale(mode.loss_scale);
  options.callbacks.push_back(std::make_shared<train::PrecisionNote>());
  return options;
}

std::map<std::string, std::string> run(const Mode& mode, const std::string& directory, bool interrupted = false) {
  train::RunOptions options = options_of(mode, directory);
  const auto train_on = [&](auto use) {
    auto task = small_masked();
    task.model().set_checkpoint_policy(autograd::parse_checkpoint_policy(mode.checkpointing));
    use(task);
  };
  if (interrupted) {
    train_on([&](train::Task& task) {
      StoppingTask stopping(task, stop_at * mode.micro_batches);
      options.stop = &stopping.stop;
      CHECK(train::run(stopping, options, small_header).steps == stop_at);
    });
    options.resume = true;
    options.stop = nullptr;
  }
  train_on([&](train::Task& task) { train::run(task, options, small_header); });
  return left_behind(directory, steps);
}

std::vector<double> losses(const std::string& directory) {
  return train::read_metrics(directory + "/metrics.jsonl").series("loss").values;
}

}  // namespace

TEST_CASE("precisions compose with recomputation, accumulation and resuming", "[precision]") {
  const Scratch scratch;
  for (int64_t micro_batches : {1, 4}) {
    const std::string wide = scratch / join("fp32-", micro_batches);
    run({"fp32", "none", micro_batches}, wide);
    struct Case {
      std::string precision, loss_scale;
      double tolerance;  ///< of a loss that began at 4
    };
    // The dynamic scale overflows at first, grows again, and is stopped between the two.
    for (const auto& [precision, scale, tolerance] : {Case{"fp32", "1", 0},
                                                      {"tf32", "1", 0.005},
                                                      {"bf16", "1", 0.02},
                                                      {"fp16", "1", 0.02},
                                                      {"fp16", "128", 0.02},
                                                      {"fp16", "dynamic:initial=16777216,interval=3", 0.3},
                                                      {"fp8", "1", 0.1},
                                                      {"fp8/delayed,history=3", "1", 0.1},
                                                      {"fp8/delayed,history=3", "dynamic:initial=1e38,interval=3", 0.4},
                                                      {"fp8/block", "dynamic", 0.1}}) {
      INFO(precision << ", scale " << scale << ", " << micro_batches << " micro-batches");
      std::string name = join(precision, "-", scale, "-", micro_batches, "-");
      std::ranges::replace(name, '/', '-');
      const auto path = [&](const char* kind) { return scratch / (name + kind); };
      const auto plain = run({precision, "none", micro_batches, scale}, path("plain"));
      CHECK(differing(plain, run({precision, "every:1", micro_batches, scale}, path("recomputed"))) == Names{});
      CHECK(differing(plain, run({precision, "none", micro_batches, scale}, path("resumed"), true)) == Names{});
      CHECK(differing(plain, run({precision, "sqrt", micro_batches, scale}, path("both"), true)) == Names{});
      const std::vector<double> expected = losses(wide), found = losses(path("plain"));
      REQUIRE(found.size() == expected.size());
      REQUIRE(found.size() >= 3);
      for (size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - expected[i]) <= tolerance);
      CHECK((found == expected) == (precision == "fp32"));
    }
  }
}

TEST_CASE("a run goes on in another precision", "[precision]") {
  const Scratch scratch;
  train::RunOptions options = options_of({"bf16"}, scratch / "run");
  auto first = small_masked();
  train::run(first, options, small_header);
  options.autocast = train::parse_precision("fp32");
  options.max_steps = steps + 4;
  options.resume = true;
  auto second = small_masked();
  const train::RunResult result = train::run(second, options, small_header);
  CHECK(result.steps == steps + 4);
  CHECK(std::isfinite(result.loss));
  const auto modules = train::parse_precision("fp16/wide=head,low=bert.embeddings,promote=a")->modules;
  REQUIRE(modules.size() == 3);
  CHECK((modules[0].path == "head" && modules[0].policy == autograd::CastPolicy::wide));
  CHECK((modules[1].path == "bert.embeddings" && modules[1].policy == autograd::CastPolicy::low));
  CHECK((modules[2].path == "a" && modules[2].policy == autograd::CastPolicy::promote));
  CHECK(train::parse_precision("tf32/wide=head")->tf32);
  for (const char* text : {"bf16/", "bf16/wide=", "bf16/wide=a,", "fp16/broad=a", "tf32/low"})
    CHECK_THAT(error_of<ValueError>([&] { train::parse_precision(text); }),
               Catch::Contains("wide=PATH, low=PATH or promote=PATH, commas between, given"));
  CHECK_THAT(error_of<ValueError>([] { train::parse_precision("fp64"); }),
             Catch::Contains("fp32, tf32, bf16, fp16, fp8 or fp8/RECIPE, given fp64"));
}
