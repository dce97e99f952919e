// What a run leaves of its exponents: of its first step and of the last one done, whatever ends it and if it is
// resumed.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cinta/autograd/tape.h"
#include "cinta/train/callbacks.h"
#include "cinta/train/exponents.h"
#include "data_helpers.h"
#include "svg.h"
#include "train_helpers.h"

using namespace cinta;
using namespace cinta::testing;
using train::Exponents;
using train::Moment;
using train::RunOptions;

namespace {

RunOptions watched_run(const std::string& directory, int64_t steps) {
  RunOptions options = small_run(directory);
  options.max_steps = steps;
  options.callbacks.push_back(std::make_shared<train::ExponentReport>());
  return options;
}

std::vector<int64_t> steps_in(const std::string& directory) {
  std::vector<int64_t> out;
  for (const train::ExponentStep& one : train::read_exponents(directory + "/exponents.json")) out.push_back(one.step);
  return out;
}

/// Of step `index` of those in a directory, as JSON.
std::string picture(const std::string& directory, size_t index) {
  return train::json_of({train::read_exponents(directory + "/exponents.json").at(index)});
}

struct StopAt : train::TrainerCallback {
  explicit StopAt(int64_t step) : step(step) {}
  void on_step_end(const Moment& now) override { now.control.stop |= now.state.step == step; }
  int64_t step;
};

}  // namespace

TEST_CASE("a run leaves the exponents of its first and its last step, and is the same run", "[exponents]") {
  const Scratch scratch;
  auto task = small_masked(), plain = small_masked();
  train::run(task, watched_run(scratch / "watched", 4), small_header);
  RunOptions options = small_run(scratch / "plain");
  options.max_steps = 4;
  train::run(plain, options, small_header);
  CHECK(differing(left_behind(scratch / "watched", 4), left_behind(scratch / "plain", 4)).empty());
  CHECK(steps_in(scratch / "watched") == std::vector<int64_t>{1, 4});
  CHECK(balanced(read_bytes(scratch / "watched/exponents.svg")));
  const auto json = nlohmann::json::parse(read_bytes(scratch / "watched/exponents.json"));
  CHECK(json["steps"][0]["tensors"].size() == json["steps"][1]["tensors"].size());
  CHECK(json["steps"][0]["tensors"][0]["counts"].size() == Exponents::most - Exponents::least + 1);
  CHECK(autograd::mode().observer == nullptr);
}

TEST_CASE("whatever ends a run, its exponents show the last step done, with the weights it led to", "[exponents]") {
  const Scratch scratch;
  const auto check = [&](const std::string& name, train::Task& task, RunOptions options, int64_t last) {
    INFO(name);
    options.output_dir = scratch / name;
    CHECK(train::run(task, options, small_header).steps == last);
    CHECK(steps_in(scratch / name) == std::vector<int64_t>{1, last});
    // what lies in the checkpoint of that step, and not in another that is loaded afterwards
    const train::ExponentStep seen = train::read_exponents(scratch / name + "/exponents.json").at(1);
    auto saved = small_masked();
    saved.load(scratch / name + "/checkpoint-" + std::to_string(last));
    for (const optim::Parameter& parameter : saved.model().parameters()) {
      Exponents wanted;
      wanted.add(parameter.tensor);
      for (const Exponents& one : seen.tensors)
        if (one.kind == Exponents::weight && one.name == parameter.name) CHECK(one.counts == wanted.counts);
    }
  };
  auto task = small_masked(), early = small_masked(), inner = small_masked();
  RunOptions options = watched_run("", 30);
  options.callbacks.push_back(std::make_shared<StopAt>(5));
  check("callback", task, options, 5);

  options = watched_run("", 30);
  options.eval_steps = 3;
  const train::WatchedMetric falling{.name = "eval_loss",
                                     .greater_is_better = true};  // the first evaluation is the best
  options.callbacks.push_back(
      std::make_shared<train::EarlyStopping>(train::EarlyStopping::Options{.metric = falling, .patience = 1}));
  options.callbacks.push_back(
      std::make_shared<train::BestCheckpoint>(train::BestCheckpoint::Options{.metric = falling, .load_at_end = true}));
  check("early", early, options, 6);

  options = watched_run("", 30);
  StoppingTask stopping(inner, 3 * 3 + 2);  // in the fourth step
  options.stop = &stopping.stop;
  check("signal", stopping, options, 4);
}

TEST_CASE("a run of one step leaves one picture", "[exponents]") {
  const Scratch scratch;
  auto task = small_masked();
  RunOptions options = watched_run(scratch / "run", 1);
  options.schedule = {};
  train::run(task, options, small_header);
  CHECK(steps_in(scratch / "run") == std::vector<int64_t>{1});
}

TEST_CASE("a resumed run keeps the first step's exponents", "[exponents]") {
  const Scratch scratch;
  const std::string run = scratch / "run";
  auto task = small_masked();
  RunOptions options = watched_run(run, 8);
  options.callbacks.push_back(std::make_shared<StopAt>(3));
  train::run(task, options, small_header);
  const std::string first = picture(run, 0);
  CHECK(steps_in(run) == std::vector<int64_t>{1, 3});

  options.callbacks.pop_back();
  options.resume = true;
  auto again = small_masked();
  train::run(again, options, small_header);
  CHECK(steps_in(run) == std::vector<int64_t>{1, 8});
  CHECK(picture(run, 0) == first);

  const std::string whole = read_bytes(run + "/exponents.json");
  auto done = small_masked();  // nothing is left to do
  train::run(done, options, small_header);
  CHECK(read_bytes(run + "/exponents.json") == whole);

  auto uninterrupted = small_masked();
  train::run(uninterrupted, watched_run(scratch / "whole", 8), small_header);
  CHECK(read_bytes(scratch / "whole/exponents.json") == whole);

  write_bytes(run + "/exponents.json", "{}");
  auto refused = small_masked();
  CHECK_THROWS_WITH(train::run(refused, options, small_header), Catch::Contains(run + "/exponents.json"));

  options.resume = false;
  options.overwrite = true;
  auto anew = small_masked();
  train::run(anew, options, small_header);
  CHECK(picture(run, 0) == first);
}

TEST_CASE("a step is repeated with its own batches and random numbers, and only after one", "[train]") {
  struct Repeating : train::TrainerCallback {
    static std::map<std::string, std::vector<float>> gradients(const Moment& now) {
      std::map<std::string, std::vector<float>> out;
      for (const optim::Parameter& one : now.task.model().parameters())
        out[one.name] = to_vector<float>(autograd::gradient(one.tensor));
      return out;
    }
    void on_train_begin(const Moment& now) override { CHECK_THROWS_AS(now.repeat_step(), ValueError); }
    void on_pre_optimizer_step(const Moment& now) override { seen = gradients(now); }
    void on_train_end(const Moment& now) override {
      now.repeat_step();
      CHECK(gradients(now) == seen);
    }
    std::map<std::string, std::vector<float>> seen;
  };
  auto task = small_masked();
  RunOptions options = small_run("");
  options.max_steps = 7;
  options.optimizer.rate = 0;
  options.callbacks.push_back(std::make_shared<Repeating>());
  train::run(task, options, small_header);
}
