// Thirty steps of `cinta train bert` against thirteen, kill -9 and seventeen more: everything a run keeps, at once.
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "cinta/train/checkpoint_directory.h"
#include "cinta/train/metrics.h"
#include "command_helpers.h"

using namespace cinta;
using namespace cinta::testing;
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

/// Of 40 steps, early stopping leaves 30: the first evaluation, at step 6, is never beaten by a thousand nats, so those
/// at 12, 18, 24 and 30 are in vain. The rate is so high that the best evaluation is not always the last.
Arguments thirty_steps(const std::string& text, const std::string& directory) {
  const Arguments model{"--sequence_length", "16", "--vocab_size", "160", "--dropout", "0.1", "--threads", "1"},
      pace{"--max_steps", "40", "--logging_steps", "4", "--eval_steps", "6", "--save_steps", "13"};
  return Arguments{"train", "bert", "--data", text, "--output_dir", directory, "--cache_dir", "none", "--quiet"} +
         model + pace + Arguments{"--batch_size", "4", "--gradient_accumulation_steps", "3"} +
         Arguments{"--learning_rate", "0.01", "--warmup_steps", "2", "--load_best_model_at_end"} +
         Arguments{"--early_stopping", "patience=4,min_delta=1000"};
}

/// Starts the run and kills it as soon as the checkpoint of step 13 stands. False if it had gone on to another one.
bool killed_after_thirteen(const Arguments& command, const std::string& directory) {
  fs::remove_all(directory);
  Child child(command);
  while (child.running() && !fs::exists(directory + "/checkpoint-13"))
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  child.send(SIGKILL);
  const int code = child.wait().code;
  const auto newest = train::newest_checkpoint(directory).newest;
  return code == 128 + SIGKILL && newest && newest->step == 13;
}

Json state_of(const std::string& checkpoint) { return Json::parse(read_bytes(checkpoint + "/trainer_state.json")); }

/// What two runs of the same options leave alike: all but what names their directory or the time.
std::vector<std::pair<std::string, std::string>> comparable(const std::string& directory) {
  auto out = contents(directory);
  const std::set<std::string> own{"report.html", "times.jsonl", "loss.svg", "env.json"};
  std::erase_if(out, [&](const auto& file) { return own.contains(file.first); });
  return out;
}

}  // namespace

TEST_CASE("thirty steps are thirteen, kill -9 and seventeen more, bit for bit", "[command_resume]") {
  const Scratch scratch;
  const std::string text = write_texts(scratch, "text", "value_"), whole = scratch / "whole", parts = scratch / "parts";
  const Finished alone = run_cinta(thirty_steps(text, whole));
  INFO(alone.error);
  REQUIRE(alone.code == 0);
  REQUIRE(train::newest_checkpoint(whole).newest->step == 30);

  const Arguments command = thirty_steps(text, parts);
  bool killed = false;
  for (int attempt = 0; attempt < 20 && !killed; ++attempt) killed = killed_after_thirteen(command, parts);
  REQUIRE(killed);  // the machine may be too busy for one look in time, but not for twenty
  CHECK(!fs::exists(parts + "/model.safetensors"));

  // step 13 is in the middle of an epoch, of a logging interval, of early stopping's patience
  const auto logged = train::read_metrics(whole + "/metrics.jsonl").series("epoch");
  const double epoch = 13 * logged.values.front() / logged.steps.front();
  CHECK(std::abs(epoch - std::round(epoch)) > 0.01);
  const Json state = state_of(parts + "/checkpoint-13");
  INFO(state.dump());
  CHECK(state.at("callbacks").at("early_stopping.waited") == 1);
  CHECK(state.at("callbacks").at("best.step").get<int>() >= 6);
  CHECK(state.at("interval_items").get<int>() > 0);
  CHECK(state.at("epoch").get<double>() == Approx(epoch));
  CHECK(state.at("best_metric") == state.at("callbacks").at("best.value"));
  CHECK(state.at("best_global_step") == state.at("callbacks").at("best.step"));
  CHECK(fs::exists(parts + "/" + state.at("best_model_checkpoint").get<std::string>()));

  const Finished resumed = run_cinta(command + Arguments{"--resume"});
  INFO(resumed.error);
  REQUIRE(resumed.code == 0);
  CHECK(state_of(whole + "/checkpoint-30").at("callbacks").at("early_stopping.waited") == 4);
  CHECK(train::read_metrics(parts + "/metrics.jsonl").records.back().step == 30);
  const auto expected = comparable(whole), found = comparable(parts);
  std::vector<std::string> names;
  for (size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
    REQUIRE(i < std::min(expected.size(), found.size()));
    INFO(expected[i].first);
    REQUIRE(expected[i].first == found[i].first);
    CHECK(expected[i].second == found[i].second);
    names.push_back(expected[i].first);
  }
  for (const char* name : {"checkpoint-30/model.safetensors", "checkpoint-30/optimizer.safetensors",
                           "checkpoint-30/trainer_state.json", "metrics.jsonl", "model.safetensors"})
    CHECK(std::ranges::count(names, name) == 1);
  for (const char* name : {"best", "last"})
    CHECK(fs::read_symlink(parts + "/" + name) == fs::read_symlink(whole + "/" + name));
  CHECK(read_bytes(parts + "/model.safetensors") == read_bytes(parts + "/best/model.safetensors"));
}
