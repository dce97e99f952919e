// The training loop: an interrupted run leaves the bytes of one that was not, whatever interrupted it; threads and
// checkpointing change no bit; what cannot be is refused.
#include "cinta/train/loop.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/train/checkpoint_directory.h"
#include "crash.h"
#include "data_helpers.h"
#include "train_helpers.h"

using namespace cinta;
using namespace cinta::testing;
using train::RunOptions;
using train::RunResult;

namespace {

/// 30 steps at once against 13, a stop, and 17 more from the files.
template <class Make>
void check_resume(Make make) {
  const Scratch scratch;
  auto whole = make();
  const RunResult finished = train::run(whole, small_run(scratch / "whole"), small_header);
  CHECK(finished.steps == 30);
  CHECK(finished.stopped_by == 0);
  CHECK(finished.checkpoint == scratch / "whole/checkpoint-30");
  CHECK(!finished.evaluation.empty());

  RunOptions options = small_run(scratch / "parts");
  {
    auto part = make();
    StoppingTask stopping(part, 3 * 13 - 1);  // in the middle of step 13, which is finished first
    options.stop = &stopping.stop;
    const RunResult result = train::run(stopping, options, small_header);
    CHECK(result.steps == 13);
    CHECK(result.stopped_by == SIGTERM);
    CHECK(result.evaluation.empty());
    CHECK(result.checkpoint == scratch / "parts/checkpoint-13");
  }
  options.stop = {};
  options.resume = true;
  auto rest = make();
  const RunResult result = train::run(rest, options, small_header);
  CHECK(result.steps == 30);
  CHECK(result.loss == finished.loss);
  CHECK(result.evaluation == finished.evaluation);
  const auto expected = left_behind(scratch / "whole"), found = left_behind(scratch / "parts");
  CHECK(differing(expected, found) == Names{});
  CHECK(expected.size() >= 5);  // metrics, weights, configuration, optimizer, state
  CHECK(expected.at("model.safetensors") != left_behind(scratch / "parts", 13).at("model.safetensors"));
}

}  // namespace

TEST_CASE("a perceptron stopped and resumed in the middle of an epoch leaves the bytes of an uninterrupted run",
          "[train]") {
  check_resume([] { return small_classifier(); });
}

TEST_CASE("a bert with dropout stopped and resumed in the middle of an epoch leaves the bytes of an uninterrupted run",
          "[train]") {
  check_resume([] { return small_masked(); });
}

TEST_CASE("a run killed at any file call goes on as if nothing had happened", "[train]") {
  const ThreadScope one(1);  // ThreadSanitizer allows a child of fork() no threads
  const Scratch scratch;
  auto options = [&](const char* name) {
    RunOptions out = small_run(scratch / name);
    out.max_steps = 6;
    out.accumulation_steps = 1;
    out.logging_steps = 2;
    out.eval_steps = 3;
    out.save_steps = 2;
    return out;
  };
  const data::Split split = small_digits();
  auto whole = small_classifier(split);
  train::run(whole, options("whole"), small_header);
  const auto expected = left_behind(scratch / "whole", 6);
  int calls = 0, resumed = 0;
  for (int status = 137; status == 137; ++calls) {
    RunOptions killed = options("killed");
    std::filesystem::remove_all(killed.output_dir);
    status = killed_at(calls, [&] {
      auto task = small_classifier(split);
      train::run(task, killed, small_header);
    });
    REQUIRE((status == 137 || status == 0));
    killed.resume = true;
    auto task = small_classifier(split);
    const RunResult result = train::run(task, killed, small_header);
    INFO("killed at call " << calls);
    CHECK(result.steps == 6);
    CHECK(differing(expected, left_behind(killed.output_dir, 6)) == Names{});
    resumed += std::filesystem::exists(killed.output_dir + "/checkpoint-2");
  }
  CHECK(calls > 40);
  CHECK(resumed > 20);
}

TEST_CASE("a bert killed while it saves goes on as if nothing had happened", "[train]") {
  const ThreadScope one(1);
  const Scratch scratch;
  auto options = [&](const char* name) {
    RunOptions out = small_run(scratch / name);
    out.max_steps = 9;
    out.save_steps = 4;
    return out;
  };
  auto whole = small_masked();
  train::run(whole, options("whole"), small_header);
  const auto expected = left_behind(scratch / "whole", 9);
  for (int call = 20;; call += 7) {
    RunOptions killed = options("killed");
    std::filesystem::remove_all(killed.output_dir);
    const int status = killed_at(call, [&] {
      auto task = small_masked();
      train::run(task, killed, small_header);
    });
    REQUIRE((status == 137 || status == 0));
    if (status == 0) {
      CHECK(call > 40);
      break;
    }
    killed.resume = true;
    auto task = small_masked();
    train::run(task, killed, small_header);
    INFO("killed at call " << call);
    CHECK(differing(expected, left_behind(killed.output_dir, 9)) == Names{});
  }
}

TEST_CASE("a finished run that is resumed stays as it is", "[train]") {
  const Scratch scratch;
  RunOptions options = small_run(scratch / "run");
  auto first = small_classifier();
  const RunResult finished = train::run(first, options, small_header);
  const auto before = left_behind(options.output_dir);
  options.resume = true;
  for (int i = 0; i < 2; ++i) {
    auto again = small_classifier();
    const RunResult result = train::run(again, options, small_header);
    CHECK(result.steps == 30);
    CHECK(result.evaluation == finished.evaluation);
    CHECK(differing(before, left_behind(options.output_dir)) == Names{});
  }
}

TEST_CASE("a run in the place of another needs to be told so", "[train]") {
  const Scratch scratch;
  RunOptions options = small_run(scratch / "run");
  options.max_steps = 8;
  options.save_steps = 4;
  auto first = small_classifier();
  train::run(first, options, small_header);
  const auto before = left_behind(options.output_dir, 8);

  auto second = small_classifier();
  const std::string error = error_of<ValueError>([&] { train::run(second, options, small_header); });
  CHECK(error.find(options.output_dir + " already holds a run; --resume goes on with it, --overwrite starts anew") !=
        std::string::npos);
  CHECK(differing(before, left_behind(options.output_dir, 8)) == Names{});

  options.overwrite = true;
  options.max_steps = 5;
  auto third = small_classifier();
  CHECK(train::run(third, options, small_header).checkpoint == options.output_dir + "/checkpoint-5");
  CHECK(!std::filesystem::exists(options.output_dir + "/checkpoint-8"));
}

TEST_CASE("a try that failed before its first step is no run, a model without a run is not written over", "[train]") {
  const Scratch scratch;
  RunOptions options = small_run(scratch / "run");
  options.max_steps = 4;
  data::Split split = small_digits();
  for (double& input : split.train.inputs) input = NAN;
  auto damaged = small_classifier(split);
  options.detect_anomaly = true;
  CHECK_THROWS_AS(train::run(damaged, options, small_header), ValueError);
  auto second = small_classifier();
  CHECK(train::run(second, options, small_header).steps == 4);

  std::filesystem::create_directory(scratch / "model");
  write_bytes(scratch / "model/model.safetensors", "someone's");
  options.output_dir = scratch / "model";
  auto third = small_classifier();
  for (const bool resume : {false, true}) {
    options.resume = resume;
    CHECK(error_of<ValueError>([&] {
            train::run(third, options, small_header);
          }).find("already holds weights or checkpoints; --overwrite starts anew") != std::string::npos);
  }
  CHECK(read_bytes(scratch / "model/model.safetensors") == "someone's");
}

TEST_CASE("a run is not resumed with other options", "[train]") {
  const Scratch scratch;
  RunOptions options = small_run(scratch / "run");
  options.max_steps = 4;
  auto first = small_classifier();
  train::run(first, options, {{"model", std::string("small")}, {"seed", int64_t{0}}, {"learning_rate", 0.002}});
  const auto before = left_behind(options.output_dir, 4);
  options.resume = true;
  options.max_steps = 8;
  auto second = small_classifier();
  const std::string error = error_of<ValueError>([&] {
    train::run(second, options, {{"model", std::string("small")}, {"seed", int64_t{1}}, {"learning_rate", 0.001}});
  });
  CHECK(error.find("learning_rate 0.001, begun with 0.002; seed 1, begun with 0") != std::string::npos);
  CHECK(differing(before, left_behind(options.output_dir, 4)) == Names{});
}

TEST_CASE("a damaged checkpoint is passed over for an older one and never deleted", "[train]") {
  const Scratch scratch;
  RunOptions options = small_run(scratch / "run");
  options.max_steps = 8;
  options.save_steps = 4;
  auto first = small_classifier();
  train::run(first, options, small_header);
  const auto expected = left_behind(options.output_dir, 8);
  auto damage = [&](const char* checkpoint) {
    const std::string path = options.output_dir + checkpoint + "/model.safetensors";
    std::string bytes = read_bytes(path);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    write_bytes(path, bytes);
  };
  options.resume = true;
  damage("/checkpoint-8");
  auto again = small_classifier();
  CHECK(train::run(again, options, small_header).steps == 8);
  CHECK(differing(expected, left_behind(options.output_dir, 8)) == Names{});

  damage("/checkpoint-8");
  damage("/checkpoint-4");
  const auto damaged = left_behind(options.output_dir, 4);
  auto third = small_classifier();
  const std::string error = error_of<FileError>([&] { train::run(third, options, small_header); });
  CHECK(error.find("has no whole checkpoint") != std::string::npos);
  CHECK(error.find("model.safetensors: found CRC-32") != std::string::npos);
  CHECK(differing(damaged, left_behind(options.output_dir, 4)) == Names{});
}

TEST_CASE("a run that has done more steps than asked for is not resumed", "[train]") {
  const Scratch scratch;
  RunOptions options = small_run(scratch / "run");
  options.max_steps = 6;
  auto first = small_classifier();
  train::run(first, options, small_header);
  options.max_steps = 4;
  options.resume = true;
  auto second = small_classifier();
  const std::string error = error_of<ValueError>([&] { train::run(second, options, small_header); });
  CHECK(error.find("has done 6 steps already, max_steps is 4") != std::string::npos);
}

TEST_CASE("resuming where nothing lies begins anew", "[train]") {
  const Scratch scratch;
  RunOptions options = small_run(scratch / "plain");
  options.max_steps = 4;
  auto plain = small_classifier();
  train::run(plain, options, small_header);
  options.output_dir = scratch / "resumed";
  options.resume = true;
  auto resumed = small_classifier();
  train::run(resumed, options, small_header);
  CHECK(differing(left_behind(scratch / "plain", 4), left_behind(scratch / "resumed", 4)) == Names{});
}

TEST_CASE("threads and checkpointing change no bit of a run", "[train]") {
  const Scratch scratch;
  auto wide = [] {
    models::BertConfig config = small_config(0.1);
    config.hidden_size = 64;
    config.intermediate_size = 256;
    return train::MaskedTask(small_corpus(), config, 16, 9);
  };
  auto run = [&](const char* name, int threads, const char* policy) {
    const ThreadScope scope(threads);
    RunOptions options = small_run(scratch / name);
    options.max_steps = 5;
    auto task = wide();
    task.model().set_checkpoint_policy(autograd::parse_checkpoint_policy(policy));
    train::run(task, options, small_header);
    return left_behind(options.output_dir, 5);
  };
  const auto expected = run("plain", 1, "none");
  CHECK(differing(expected, run("two", 2, "none")) == Names{});
  CHECK(differing(expected, run("three", 3, "none")) == Names{});
  CHECK(differing(expected, run("every", 1, "every:1")) == Names{});
  CHECK(differing(expected, run("sqrt", 2, "sqrt")) == Names{});
  CHECK(differing(expected, run("selective", 2, "selective:self_attention")) == Names{});
}

TEST_CASE("accumulated micro-batches are one batch", "[train]") {
  auto loss = [](int64_t batch, int64_t accumulation) {
    train::ClassifyTask task = small_classifier(small_digits(), batch);
    RunOptions options = small_run("");
    options.max_steps = 12;
    options.accumulation_steps = accumulation;
    return train::run(task, options, small_header).loss;
  };
  CHECK(loss(8, 6) == Approx(loss(48, 1)).epsilon(1e-4));
  CHECK(loss(8, 6) != Approx(loss(8, 1)).epsilon(1e-2));
}

TEST_CASE("a loss that is not a number stops the run and keeps the last checkpoint", "[train]") {
  const Scratch scratch;
  data::Split split = small_digits();
  split.train.inputs[77 * 64 + 5] = NAN;
  RunOptions options = small_run(scratch / "run");
  options.save_steps = 1;
  options.accumulation_steps = 1;
  options.logging_steps = 30;
  auto task = small_classifier(split);
  const std::string error = error_of<ValueError>([&] { train::run(task, options, small_header); });
  INFO(error);
  const int64_t bad_step = int64_t{std::stoi(error.substr(error.find("step ") + 5))};
  CHECK(error.find(join("[train] the loss of step ", bad_step, " is nan: [linear] the output has ")) == 0);
  const train::CheckpointSearch search = train::newest_checkpoint(options.output_dir);
  CHECK((search.newest ? search.newest->step : 0) == bad_step - 1);
  if (search.newest) {  // the bad row is in the first epoch; what was saved before it is whole
    options.resume = true;
    options.max_steps = search.newest->step;
    auto again = small_classifier(split);
    CHECK(train::run(again, options, small_header).steps == options.max_steps);
  }
  options = small_run("");
  options.detect_anomaly = true;
  auto watched = small_classifier(split);
  const std::string op = error_of<ValueError>([&] { train::run(watched, options, small_header); });
  CHECK(op.find("[linear] the output has ") == 0);
  CHECK(op.find("in mlp.layers.0") != std::string::npos);
}

TEST_CASE("a run without a directory trains and writes nothing", "[train]") {
  RunOptions options = small_run("");
  options.max_steps = 100;
  auto task = small_classifier();
  const RunResult result = train::run(task, options, small_header);
  CHECK(result.checkpoint.empty());
  CHECK(result.loss < 0.5);
  CHECK(train::number(result.evaluation, "eval_accuracy") > 0.8);
}

TEST_CASE("options that cannot be are refused before anything is written", "[train]") {
  const Scratch scratch;
  for (int i = 0; i < 4; ++i) {
    RunOptions options = small_run(scratch / "run");
    if (i == 0) options.max_steps = 0;
    if (i == 1) options.accumulation_steps = 0;
    if (i == 2) options.logging_steps = -1;
    if (i == 3) options.schedule.warmup = 31;
    auto task = small_classifier();
    CHECK(error_of<ValueError>([&] { train::run(task, options, small_header); }) != "no error");
    CHECK(!std::filesystem::exists(options.output_dir));
  }
}

TEST_CASE("micro-batches draw apart, packed or not", "[train]") {
  /// Writes down what each forward's dropout is drawn from.
  struct Watching : ForwardingTask {
    using ForwardingTask::ForwardingTask;
    train::Forward forward(const data::Batch& batch) override {
      seen.push_back(to_vector<int64_t>(random()->state()));
      return task.forward(batch);
    }
    std::vector<std::vector<int64_t>> seen;
  };
  using Records = std::vector<std::vector<int64_t>>;
  for (const bool packed : {false, true}) {
    const Scratch scratch;
    train::MaskedTask masked = small_masked();
    masked.compute_without_padding(packed);
    Watching task(masked);
    train::RunOptions options = small_run(scratch / "run");
    options.max_steps = 2;
    options.schedule = {};
    train::run(task, options, small_header);
    task.seen.resize(6);
    const int64_t seed = task.seen[0][0];
    // Of samples of one length, numbers of samples tell words apart; of packed ones, which have none, steps.
    if (packed)
      CHECK(task.seen == Records{{seed, 0, 0}, {seed, 1, 0}, {seed, 2, 0}, {seed, 3, 0}, {seed, 4, 0}, {seed, 5, 0}});
    else
      CHECK(task.seen == Records{{seed, 0, 0}, {seed, 0, 4}, {seed, 0, 8}, {seed, 1, 0}, {seed, 1, 4}, {seed, 1, 8}});
  }
}
