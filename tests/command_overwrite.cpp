// `--output_dir` where files lie already: a run's, which --overwrite removes, and others, which nothing touches.
#include <catch2/catch.hpp>
#include <set>

#include "command_helpers.h"

using namespace cinta::testing;
namespace fs = std::filesystem;

namespace {

std::set<std::string> names(const std::string& directory) {
  std::set<std::string> out;
  for (const auto& [name, bytes] : contents(directory)) out.insert(name);
  return out;
}

}  // namespace

TEST_CASE("--overwrite leaves nothing of an earlier run of any kind, and all that is no run's", "[command]") {
  const Scratch scratch;
  const std::string run = scratch / "run", text = write_texts(scratch, "text", "thing_");
  const Arguments anew = short_training(run, {"--report", "none", "--overwrite"});
  REQUIRE(run_cinta(short_training(scratch / "fresh", {"--report", "none"})).code == 0);
  std::set<std::string> wanted = names(scratch / "fresh");
  for (const char* mine : {"mine.txt", "trace.json", "seed-1/mine.txt", "seed-9/config.json"}) wanted.insert(mine);
  const Arguments on_text{"--data",  text + "/0.txt",     "--output_dir", run,         "--max_steps",
                          "2",       "--sequence_length", "16",           "--threads", "1",
                          "--quiet", "--overwrite"};
  for (const Arguments& earlier :
       {short_training(run, {"--seeds", "3", "--report_to", "tensorboard", "--exponents"}),
        Arguments{"train", "bert", "--vocab_size", "80"} + on_text, Arguments{"train", "characters"} + on_text}) {
    const Finished finished = run_cinta(earlier);
    INFO(earlier[1] << ": " << finished.error);
    REQUIRE(finished.code == 0);
    CHECK(names(run) != wanted);
    for (const char* directory : {"/seed-1", "/seed-9"}) fs::create_directories(run + directory);
    for (const char* mine : {"/mine.txt", "/trace.json", "/seed-1/mine.txt", "/seed-9/config.json"})
      write_bytes(run + mine, "mine");
    REQUIRE(run_cinta(anew).code == 0);
    CHECK(names(run) == wanted);
    CHECK(read_bytes(run + "/seed-9/config.json") == "mine");
    CHECK(!fs::exists(run + "/seed-2"));
  }
}

TEST_CASE("files of a run's names that no run wrote are not overwritten unasked", "[command]") {
  const Scratch scratch;
  const std::string directory = scratch / "mine";
  for (const char* name : {"config.json", "report.html", "vocab.txt", "events.out.tfevents.1.host.2.0", "last"}) {
    fs::remove_all(directory);
    fs::create_directory(directory);
    write_bytes(directory + "/" + name, "mine");
    const auto before = contents(directory);
    check_refused(short_training(directory), {directory + " holds no run, but ", name, "--overwrite"});
    CHECK(contents(directory) == before);
  }
  CHECK(run_cinta(short_training(directory, {"--overwrite"})).code == 0);
  fs::remove_all(directory);
  fs::create_directory(directory);
  for (const char* name : {"/notes.txt", "/checkpoint-notes.txt"}) write_bytes(directory + name, "mine");
  CHECK(run_cinta(short_training(directory)).code == 0);
  for (const char* name : {"/notes.txt", "/checkpoint-notes.txt"}) CHECK(read_bytes(directory + name) == "mine");
}

TEST_CASE("weights and checkpoints that no run can go on from are not begun anew over unasked", "[command]") {
  const Scratch scratch;
  const std::string directory = scratch / "mine";
  for (const std::string name : {"model.safetensors", "checkpoint-500/weights", "best/weights"})
    for (const char* metrics : {"", "{\"accuracy\":0.9}\n"})
      for (const Arguments& more : {Arguments{}, Arguments{"--resume"}}) {
        INFO(name << " " << metrics << more.size());
        fs::remove_all(directory);
        fs::create_directories(fs::path(directory + "/" + name).parent_path());
        write_bytes(directory + "/" + name, "mine");
        if (*metrics) write_bytes(directory + "/metrics.jsonl", metrics);
        const auto before = contents(directory);
        check_refused(short_training(directory, more), {directory, "--overwrite"});
        CHECK(contents(directory) == before);
      }
}

TEST_CASE("a run whose checkpoints were deleted is not begun anew by --resume", "[command]") {
  const Scratch scratch;
  const std::string directory = scratch / "run";
  REQUIRE(run_cinta(short_training(directory)).code == 0);
  for (const char* name : {"/checkpoint-20", "/best", "/last"}) fs::remove_all(directory + name);
  const auto before = contents(directory);
  check_refused(short_training(directory, {"--resume"}),
                {"already holds weights or checkpoints; --overwrite starts anew"});
  CHECK(contents(directory) == before);
}

TEST_CASE("--overwrite with options that are refused harms nothing", "[command]") {
  const Scratch scratch;
  const std::string directory = scratch / "run";
  REQUIRE(run_cinta(short_training(directory)).code == 0);
  const auto before = contents(directory);
  const auto refused = [&](const Arguments& wrong, const Parts& parts) {
    check_refused(short_training(directory, Arguments{"--overwrite"} + wrong), parts);
    CHECK(contents(directory) == before);
  };
  const Arguments watched{"--eval_steps", "5", "--metric_for_best_model", "acuracy"};
  refused(watched, {"acuracy"});
  refused(watched + Arguments{"--early_stopping", "patience=2"}, {"acuracy"});
  refused({"--trace", scratch / "t.json", "--trace_steps", "30:31"}, {"30:31"});
  refused({"--trace", scratch / "none/t.json"}, {"none/"});
  refused({"--trace", directory + "/none/t.json"}, {"none/"});
  CHECK(run_cinta(short_training(scratch / "new", {"--trace", scratch / "./new/t.json"})).code == 0);
}

TEST_CASE("each seed's run says which it is", "[command]") {
  const Scratch scratch;
  REQUIRE(run_cinta(short_training(scratch / "run", {"--seeds", "2", "--seed", "7"})).code == 0);
  CHECK(holds(scratch / "run/metrics.jsonl", "\"seed\":7"));
  CHECK(holds(scratch / "run/seed-8/metrics.jsonl", "\"seed\":8"));
  const std::string last = "18446744073709551615", wanted = "\"seed\":" + last + ",";
  const Finished finished = run_cinta(short_training(scratch / "last", {"--seed", last, "--json"}));
  REQUIRE(finished.code == 0);
  CHECK(finished.out.find(wanted) != std::string::npos);
  CHECK(holds(scratch / "last/metrics.jsonl", wanted));
  REQUIRE(run_cinta(short_training(scratch / "last", {"--seed", last, "--resume"})).code == 0);
  check_refused(short_training(scratch / "last", {"--seed", "1", "--resume"}), {"seed 1, begun with " + last});
}
