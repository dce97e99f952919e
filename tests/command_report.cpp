// Trainings and their report.html: there unless it is not wanted, the same training either way, and no reason to end
// it.
#include <algorithm>
#include <catch2/catch.hpp>

#include "command_helpers.h"
#include "markup.h"

using namespace cinta::testing;
namespace fs = std::filesystem;

TEST_CASE("cinta train leaves a report, or what it leaves without one", "[command]") {
  const Scratch scratch;
  REQUIRE(run_cinta(short_training(scratch / "a 'run'", {"--seeds", "2"})).code == 0);
  REQUIRE(run_cinta(short_training(scratch / "none", {"--report", "none"})).code == 0);
  for (const char* part : {"", "/seed-1"}) {
    const std::string page = read_bytes(scratch / "a 'run'" + part + "/report.html");
    CHECK(fault_of(page) == "");
    CHECK_THAT(page, Catch::Contains("data-state=\"finished\"") &&
                         Catch::Contains("cinta train mlp --data generated --output_dir '" + scratch.path() +
                                         "/a '\\''run'\\''' --max_steps 20"));
  }
  for (const char* name : {"/report.html", "/times.jsonl"}) CHECK(!fs::exists(scratch / "none" + name));
  for (const char* name : {"/model.safetensors", "/metrics.jsonl"})
    CHECK(read_bytes(scratch / "a 'run'" + name) == read_bytes(scratch / "none" + name));

  const Finished refused = run_cinta(short_training(scratch / "pdf", {"--report", "pdf"}));
  CHECK(refused.code == 2);
  CHECK_THAT(refused.error, Catch::Contains("--report"));
  CHECK(!fs::exists(scratch / "pdf"));
}

TEST_CASE("a report that cannot be written is told once and does not end the training", "[command]") {
  const Scratch scratch;
  for (const char* name : {"report.html", "times.jsonl"}) {
    const std::string directory = scratch / name;
    fs::create_directories(directory + "/" + name + "/in the way");
    const Finished finished = run_cinta(short_training(directory, {"--overwrite"}));
    INFO(finished.error);
    CHECK(finished.code == 0);
    CHECK(std::ranges::count(finished.error, '\n') == 1);
    CHECK_THAT(finished.error, Catch::Contains("the training goes on") && Catch::Contains(directory + "/" + name));
    CHECK(fs::exists(directory + "/model.safetensors"));
    CHECK(fs::exists(directory + "/report.html"));
    for (const auto& entry : fs::directory_iterator(directory))
      CHECK(entry.path().filename().string().find(".tmp-") == std::string::npos);
  }
}

// The greatest loss is the best here: that of the first evaluation.
TEST_CASE("exponents are of the last step done, also where the best model is loaded at the end", "[command]") {
  const Scratch scratch;
  const Arguments judged{"--exponents", "--greater_is_better", "--eval_strategy", "steps", "--eval_steps", "5"};
  REQUIRE(run_cinta(short_training(scratch / "last", judged)).code == 0);
  REQUIRE(run_cinta(short_training(scratch / "best", judged + Arguments{"--load_best_model_at_end"})).code == 0);
  CHECK(read_bytes(scratch / "best/exponents.json") == read_bytes(scratch / "last/exponents.json"));
  CHECK(read_bytes(scratch / "best/model.safetensors") != read_bytes(scratch / "last/model.safetensors"));
}
