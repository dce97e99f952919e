// Precisions through the command: a run in one, a run that goes on in another, a benchmark of several.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "command_helpers.h"

using namespace cinta;
using namespace cinta::testing;

TEST_CASE("the command trains in the precision that it is given", "[command]") {
  const Scratch scratch;
  const auto train = [&](const char* precision, const char* max_steps, const Arguments& more = {}) {
    return run_cinta(Arguments{"train", "mlp", "--data", "generated", "--hidden", "8", "--output_dir", scratch / "run",
                               "--warmup_steps", "2", "--precision", precision, "--max_steps", max_steps} +
                     more);
  };
  REQUIRE(train("fp16", "20").code == 0);
  const Finished resumed = train("bf16", "30", {"--resume"});
  INFO(resumed.error);
  CHECK(resumed.code == 0);
  CHECK(resumed.error.find("the checkpoint is of a run in fp16, which goes on in bf16") != std::string::npos);
  const Finished scaled = train("fp16", "34", {"--resume"});  // with the scale that fp16 begins with
  CHECK(scaled.code == 0);
  CHECK(read_bytes(scratch / "run/metrics.jsonl").rfind("\"loss_scale\":65536") != std::string::npos);
  CHECK(train("bf16", "36", {"--resume"}).code == 0);
  const Finished again = train("bf16", "40", {"--resume"});
  CHECK(again.code == 0);
  CHECK(again.error.find("the checkpoint is of a run in") == std::string::npos);
  CHECK(train("bf16/wide=mlp.layers.1", "42", {"--resume"}).code == 0);
  check_refused(short_training(scratch / "other", {"--precision", "bf16/wide=mlp.layer.1"}),
                {"an op at or below mlp.layer.1,"});
  check_refused(short_training(scratch / "other", {"--precision", "half"}), {"--precision", "fp32", "bf16", "fp16"});
  check_refused(short_training(scratch / "other", {"--precision", "fp8/delayed,history=0"}),
                {"--precision", "a history of at least one step"});
  check_refused(short_training(scratch / "other", {"--precision", "fp8/current,sizes=refuse"}),
                {"[linear] sizes are multiples of 16", "in mlp.layers.", "sizes=pad"});
  CHECK(train("fp8/delayed,history=4,wide=mlp.layers.0", "50", {"--resume"}).code == 0);
  check_refused(short_training(scratch / "other", {"--precision", "fp8/current,wide=mlp.layer.0"}),
                {"a linear layer at or below wide=mlp.layer.0"});
  const std::string metrics = read_bytes(scratch / "run/metrics.jsonl");
  CHECK(metrics.rfind("\"fp8_saturated\":") < metrics.rfind("\"fp8_vanished\":"));
  CHECK(metrics.find("\"fp8_worst\":\"mlp.layers.1 ") != std::string::npos);
  CHECK(metrics.find("mlp.layers.0") == std::string::npos);
  CHECK(train("fp8/delayed,history=9", "60", {"--resume"}).code == 0);  // longer than the file's
  const Finished blocks = train("fp8/block", "64", {"--resume"});
  CHECK(blocks.code == 0);
  CHECK(blocks.error.find("of a run in fp8 by another recipe; scales are worked out anew") != std::string::npos);
  const Finished rescaled = train("fp16", "68", {"--resume", "--loss_scale", "128"});
  CHECK(rescaled.error.find("the loss scale begins anew at 128; the checkpoint's began at 1") != std::string::npos);
}

TEST_CASE("a run says how many of its steps were skipped", "[command]") {
  const Scratch scratch;
  const auto skipped = [&](const Arguments& precision) {
    const std::string result = scratch / "result.json";
    const Finished finished =
        run_cinta(short_training(scratch / "run", {"--json", "--overwrite", "--result", result}) + precision);
    INFO(finished.error);
    REQUIRE(finished.code == 0);
    const auto json = nlohmann::json::parse(finished.out);
    CHECK(json["state"] == "complete");
    CHECK(json["steps"] == 20);
    CHECK(json["skipped_steps"] == nlohmann::json::parse(read_bytes(result))["skipped_steps"]);
    return json["skipped_steps"];
  };
  CHECK(skipped({"--precision", "fp16", "--loss_scale", "1e30"}) == 20);
  CHECK(skipped({"--precision", "fp16"}) == 0);
  CHECK(skipped({}) == 0);
}

TEST_CASE("a benchmark trains in each precision with the same seeds, and goes on where it was stopped", "[command]") {
  const Scratch scratch;
  const Arguments bench{
      "bench",   "precision", "--modes",      "fp32,bf16,fp16:dynamic:initial=1e30,interval=3,fp8/delayed,history=4",
      "--seeds", "2",         "--output_dir", scratch / "p"};
  const Arguments mlp{"--", "train",     "mlp", "--data",          "generated", "--max_steps", "20", "--hidden",
                      "8",  "--threads", "1",   "--logging_steps", "5"};
  const Finished table = run_cinta(bench + mlp);
  INFO(table.error);
  REQUIRE(table.code == 0);
  for (const char* part :
       {"fp32", "bf16", "fp16:dynamic:initial=1e30,interval=3", "fp8/delayed,history=4", "minus fp32", "2 seeds"})
    CHECK(table.out.find(part) != std::string::npos);
  CHECK(holds(scratch / "p/precision.svg", "bf16"));
  CHECK(std::filesystem::exists(scratch / "p/trial-0005/model.safetensors"));

  const std::string weights = read_bytes(scratch / "p/trial-0001/model.safetensors");
  std::filesystem::remove_all(scratch / "p/trial-0004");
  const Finished again = run_cinta(bench + Arguments{"--json"} + mlp);
  REQUIRE(again.code == 0);
  CHECK(read_bytes(scratch / "p/trial-0001/model.safetensors") == weights);
  const auto found = nlohmann::json::parse(again.out);
  REQUIRE(found["modes"].size() == 4);
  CHECK(found["modes"][0]["minus_first"] == 0);
  CHECK(found["modes"][0]["peak_activation_bytes"] > 0);
  CHECK(found["date"].get<std::string>().starts_with("20"));
  CHECK(!found["machine"].get<std::string>().empty());
  const auto values = [&](int mode) { return found["modes"][mode]["eval_loss"].get<std::vector<double>>(); };
  REQUIRE(values(1).size() == 2);
  CHECK(values(0)[0] != values(0)[1]);
  CHECK(values(1) != values(0));
  CHECK(found["modes"][1]["minus_first"].get<double>() ==
        Approx((values(1)[0] - values(0)[0] + values(1)[1] - values(0)[1]) / 2).margin(1e-12));
  CHECK(found["modes"][2]["skipped_steps"] > 10);  // 1e30 is far beyond fp16: halved step by step

  // A value in brackets comes to the trainings as it was given.
  CHECK(run_cinta({"bench", "precision", "--modes", "fp32", "--seeds", "1", "--output_dir", scratch / "q", "--",
                   "train", "mlp", "--data", "generated", "--max_steps", "2", "--threads", "1", "--hidden", "[8,8]"})
            .code == 0);
  check_refused(Arguments{"bench", "precision", "--modes", "fp32,tf32", "--output_dir", scratch / "p"} + mlp,
                {"trial-0001/trial.json is of", "bf16", "now it would be", "tf32", "take another --output_dir"});
  check_refused(bench + mlp + Arguments{"--adam_beta1", "0.8"}, {"holds runs of", "not of", "--adam_beta1"});
  std::filesystem::remove(scratch / "p/command.json");
  check_refused(bench + mlp, {"holds runs, but not the command.json"});
  const auto refused = [&](const Arguments& modes, const Arguments& command, const std::vector<std::string>& parts) {
    check_refused(Arguments{"bench", "precision", "--output_dir", scratch / "none"} + modes + Arguments{"--"} + command,
                  parts);
  };
  refused({}, {"eval"}, {"behind -- stands what all modes share"});
  refused({}, {"train", "mlp", "--data", "generated", "--seed", "3"}, {"--seed is given to the runs by the benchmark"});
  refused({"--modes", "fp32,bf16/wide=nowhere"}, {"train", "mlp", "--data", "generated", "--max_steps", "2"},
          {"an op at or below nowhere"});
  CHECK(run_cinta({"config", "train", "mlp", "--data", "generated", "--precision", "fp16/wide=mlp.layers.0"})
            .out.find("dynamic") != std::string::npos);
  refused({"--modes", "fp7"}, {"train", "mlp", "--data", "generated"}, {"fp8 or fp8/RECIPE, given fp7"});
  refused({"--modes", "fp32,fp16:-1"}, {"train", "mlp", "--data", "generated"}, {"the scale is positive", "-1"});
  refused({"--objective", "speed"}, {"train", "mlp", "--data", "generated", "--max_steps", "2"}, {"speed"});
}

TEST_CASE("every precision learns digits as well as fp32", "[command]") {
  const Scratch scratch;
  const Finished table = run_cinta({"bench",       "precision",
                                    "--modes",     "fp32,tf32,bf16,fp16,fp16:128,fp8,fp8/delayed,fp8/block",
                                    "--seeds",     "2",
                                    "--objective", "eval_accuracy",
                                    "--json",      "--output_dir",
                                    scratch / "p", "--",
                                    "train",       "mlp",
                                    "--data",      "generated",
                                    "--hidden",    "32",
                                    "--max_steps", "200",
                                    "--threads",   "1"});
  INFO(table.error);
  REQUIRE(table.code == 0);
  const auto found = nlohmann::json::parse(table.out);
  REQUIRE(found["modes"].size() == 8);
  CHECK(found["modes"][0]["mean"] > 0.85);
  for (const auto& mode : found["modes"]) {
    INFO(mode.dump());
    CHECK(std::abs(mode["minus_first"].get<double>()) <= 0.02);
  }
}
