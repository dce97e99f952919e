// The `cinta` command from outside: exit codes, one line for each wrong input and nothing half-written, runs that are
// stopped and resumed, disks that are full.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "command_helpers.h"
#include "svg.h"

using namespace cinta::testing;
namespace fs = std::filesystem;

namespace {

Arguments bert(const std::string& data, const std::string& directory, const std::string& steps = "60") {
  return {"train",        "bert", "--data",          data, "--output_dir", directory, "--sequence_length", "16",
          "--vocab_size", "160",  "--batch_size",    "2",  "--max_steps",  steps,     "--warmup_steps",    "2",
          "--threads",    "1",    "--logging_steps", "5",  "--quiet"};
}

/// One BERT, trained without interruption.
struct Trained {
  Scratch scratch;
  std::string text = write_texts(scratch, "text", "value_"), directory = scratch / "run";
  Finished finished = run_cinta(bert(text, directory) + Arguments{"--save_steps", "20"});
};
const Trained& trained() {
  static const Trained all;
  return all;
}

Arguments train_bert(const std::string& data, const std::string& directory) { return bert(data, directory, "4"); }

/// Starts a run, sends it a signal once `sign` stands in its metrics, returns how it ended.
Finished interrupted(const Arguments& command, const std::string& directory, const std::string& sign, int signal) {
  Finished finished;
  for (int attempt = 0; attempt < 5; ++attempt) {  // on a busy machine the run may be over before the signal comes
    fs::remove_all(directory);
    Child child(command);
    while (child.running() && !holds(directory + "/metrics.jsonl", sign))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    child.send(signal);
    finished = child.wait();
    if (finished.code != 0) break;
  }
  return finished;
}

/// After an interruption, --resume leaves what the whole run left.
void check_resumed(const Arguments& command, const std::string& directory, const std::string& whole) {
  const Finished finished = run_cinta(command + Arguments{"--resume"});
  INFO(finished.error);
  CHECK(finished.code == 0);
  for (const char* name : {"model.safetensors", "metrics.jsonl", "config.json"}) {
    INFO(name);
    CHECK(read_bytes(directory + "/" + name) == read_bytes(whole + "/" + name));
  }
}

/// A copy of the trained model in which one file is replaced; an empty text leaves it out.
std::string damaged(const Scratch& scratch, const std::string& name, const std::string& text) {
  fs::remove_all(scratch / "model");
  fs::create_directory(scratch / "model");
  for (const char* file : {"model.safetensors", "config.json", "vocab.txt", "tokenizer_config.json"})
    fs::copy_file(trained().directory + "/" + file, scratch / "model" + "/" + file);
  if (text.empty())
    fs::remove(scratch / "model" + "/" + name);
  else
    write_bytes(scratch / "model" + "/" + name, text);
  return scratch / "model";
}

std::string original(const std::string& name) { return read_bytes(trained().directory + "/" + name); }

/// A safetensors file with this header.
std::string safetensors(const std::string& header, const std::string& data) {
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(header.size() >> (8 * i) & 255);
  return out + header + data;
}

}  // namespace

TEST_CASE("a run leaves its model, its metrics and a chart, and the other commands read them", "[command]") {
  const Trained& run = trained();
  INFO(run.finished.error);
  REQUIRE(run.finished.code == 0);
  CHECK(run.finished.error.empty());
  CHECK(run.finished.out.find("this model") != std::string::npos);
  for (const char* name : {"config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"})
    CHECK(!original(name).empty());
  CHECK(holds(run.directory + "/metrics.jsonl", "\"step\":60"));
  const std::string chart = original("loss.svg");
  CHECK(balanced(chart));
  CHECK(all_between(chart, "class=\"curve ", ">").size() >= 2);

  const Finished filled = run_cinta({"fill", "int [MASK] = name1;", "--model", run.directory, "--top", "2"});
  CHECK(filled.code == 0);
  CHECK(std::ranges::count(filled.out, '%') == 2);
  const Finished evaluated = run_cinta({"eval", "--data", run.text, "--model", run.directory});
  CHECK(evaluated.code == 0);
  CHECK(evaluated.out.find("eval_loss ") == 0);
  CHECK(run_cinta({"--help"}).code == 0);
  CHECK(run_cinta({"train", "bert", "--help"}).out.find("--sequence_length") != std::string::npos);
}

TEST_CASE("tables that cannot be read are refused by file, line and column", "[command]") {
  const Scratch scratch;
  std::string pixels, good;
  for (int i = 0; i < 64; ++i) pixels += std::to_string(i % 17) + ",";
  for (int i = 0; i < 20; ++i) good += pixels + std::to_string(i % 10) + "\n";
  const std::string path = scratch / "digits.csv";
  check_refused_early(scratch, train_mlp, path, {}, {path, "cannot be opened"});
  for (const auto& [text, parts] : std::vector<std::pair<std::string, Parts>>{
           {good + pixels.substr(0, pixels.size() - 1) + "\n" + good, {"line 21", "found 64 columns, expected 65"}},
           {good + "0,zero," + pixels.substr(4) + "1\n", {"line 21", "column 2", "\"zero\""}},
           {good + "0,nan," + pixels.substr(4) + "1\n", {"line 21", "column 2", "\"nan\""}},
           {good + pixels + "-1\n", {"line 21", "column 65", "the class", "-1"}},
           {good + pixels + "0.5\n", {"line 21", "column 65", "the class", "0.5"}},
           {"7\n8\n", {"found 1 columns", "features and then the class"}},
           {"", {"no row"}},
           {"\x1f\x8b\x08", {"gzip"}}}) {
    write_bytes(path, text);
    check_refused_early(scratch, train_mlp, path, {}, parts + Parts{path});
  }
  write_bytes(path, good);
  CHECK(run_cinta(mlp(path, scratch / "accepted")).code == 0);
}

TEST_CASE("text that cannot be read is refused", "[command]") {
  const Scratch scratch;
  const std::string folder = scratch / "folder";
  fs::create_directory(folder);
  check_refused_early(scratch, train_bert, folder, {}, {folder, "no text"});
  check_refused_early(scratch, train_bert, folder + "/nowhere", {}, {folder + "/nowhere", "cannot be opened"});
  write_bytes(folder + "/one.txt", "int;\n");
  check_refused_early(scratch, train_bert, folder, {}, {"at least two documents"});
  write_bytes(folder + "/two.txt", "int \xe4 b;\n");
  check_refused_early(scratch, train_bert, folder, {}, {folder + "/two.txt", "byte 4", "0xe4", "UTF-8"});
}

TEST_CASE("a model's damaged files are refused by name", "[command]") {
  const Scratch scratch;
  const std::string vocabulary = original("vocab.txt"), config = original("config.json"),
                    weights = original("model.safetensors");
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  struct Case {
    const char* file;
    std::string text;
    Parts parts;
  };
  for (const Case& one : std::vector<Case>{
           {"vocab.txt", "", {"vocab.txt", "cannot be opened"}},
           {"vocab.txt", vocabulary + "int\n", {"vocab.txt", "\"int\"", "stands already in line"}},
           {"vocab.txt", replaced(vocabulary, "[UNK]\n", "what\n"), {"vocab.txt", "[UNK]"}},
           {"vocab.txt", vocabulary + "\xff\n", {"vocab.txt", "0xff"}},
           {"vocab.txt", vocabulary + "onemore\n", {"vocab.txt", "config.json", "vocab_size"}},
           {"tokenizer_config.json", "{", {"tokenizer_config.json"}},
           {"config.json", "", {"config.json", "cannot be opened"}},
           {"config.json", "[]", {"config.json", "not a JSON object"}},
           {"config.json", replaced(config, "\"bert\"", "\"gpt2\""), {"config.json", "model_type", "gpt2"}},
           {"config.json",
            replaced(config, "\"intermediate_size\": 512", "\"intermediate_size\": 256"),
            {"model.safetensors", "layer.0.intermediate.dense.weight has shape [512,128] in the file, [256,128]",
             "layer.0.output.dense.weight has shape [128,512] in the file, [128,256]",
             "layer.1.intermediate.dense.bias has shape [512] in the file, [256]", "layer.1.output.dense.weight"}},
           {"model.safetensors", "", {"model.safetensors", "cannot be opened"}},
           {"model.safetensors", weights.substr(0, weights.size() - 1), {"model.safetensors", "truncated"}},
           {"model.safetensors", weights.substr(0, 100), {"model.safetensors", "truncated"}},
           {"model.safetensors", weights + "x", {"model.safetensors"}},
           {"model.safetensors", safetensors("{" + a + ",\"b\":" + a.substr(4) + "}", "1234"), {"'b'", "'a'"}},
           {"model.safetensors", safetensors("{" + a + "," + a + "}", "1234"), {"'a'"}}}) {
    const std::string model = damaged(scratch, one.file, one.text);
    check_refused({"fill", "int [MASK];", "--model", model}, one.parts);
  }
  const std::string shorter = damaged(scratch, "vocab.txt", vocabulary.substr(0, vocabulary.find("\n##") + 1));
  CHECK(run_cinta({"eval", "--data", trained().text, "--model", shorter}).code == 0);  // tables may have spare rows
}

TEST_CASE("fill wants a mask, and no more tokens than the model has positions", "[command]") {
  const Arguments model{"--model", trained().directory};
  check_refused(Arguments{"fill", "int a;"} + model, {"[MASK]", "'int a;'"});
  check_refused(Arguments{"fill", "[MASK] ; ; ; ; ; ; ; ; ; ; ; ; ; ; ;"} + model, {"at most 16 tokens", "18"});
  check_refused(Arguments{"fill", "[MASK] \xff"} + model, {"0xff", "UTF-8"});
  check_refused({"fill", "[MASK]", "--model", "/nowhere"}, {"/nowhere/"});
}

TEST_CASE("the version is told", "[command]") {
  const Finished told = run_cinta({"--version"});
  CHECK(told.code == 0);
  CHECK(told.out == "cinta 0.1.0\n");
}

TEST_CASE("a run that diverges says so, and which op began", "[command]") {
  const Scratch scratch;
  const Arguments wild = mlp("generated", scratch / "wild", "30") + Arguments{"--learning_rate", "1e30", "--overwrite"};
  check_refused(wild, {"[train] the loss of step ", ": [linear] the output has", "in mlp.layers."});
  check_refused(wild + Arguments{"--detect_anomaly"}, {"[linear] the output has", "in mlp.layers."});
}

TEST_CASE("a run in the place of another, or resumed on another text, changes nothing", "[command]") {
  const Trained& run = trained();
  const Scratch scratch;
  const auto before = contents(run.directory);
  check_refused(bert(run.text, run.directory), {run.directory, "--resume", "--overwrite"});
  const std::string other = write_texts(scratch, "other", "thing_");
  check_refused(bert(other, run.directory) + Arguments{"--resume"},
                {"metrics.jsonl is of a run with other options", other, "begun with", run.text});
  check_refused(bert(run.text, run.directory) + Arguments{"--resume", "--sequence_length", "20"}, {});
  CHECK(contents(run.directory) == before);
}

TEST_CASE("SIGINT, SIGTERM and kill -9, then --resume, leave the bytes of a run without interruption", "[command]") {
  const Trained& run = trained();
  const Scratch scratch;
  const std::string directory = scratch / "run";
  Arguments command = bert(run.text, directory);
  SECTION("SIGINT") {
    const Finished finished = interrupted(command, directory, "\"step\":10", SIGINT);
    INFO(finished.error);
    CHECK(finished.code == 130);
    CHECK(finished.out.find("stopped at step") == 0);
    CHECK(finished.out.find("--resume goes on") != std::string::npos);
    CHECK(finished.error.empty());
    CHECK(balanced(read_bytes(directory + "/loss.svg")));
    check_resumed(command, directory, run.directory);
  }
  SECTION("kill -9") {
    command = command + Arguments{"--save_steps", "3"};
    CHECK(interrupted(command, directory, "\"step\":20", SIGKILL).code == 137);
    CHECK(!fs::exists(directory + "/model.safetensors"));
    check_resumed(command, directory, run.directory);
  }
  SECTION("SIGTERM, and a perceptron") {
    const std::string whole = scratch / "whole";
    REQUIRE(run_cinta(mlp("generated", whole, "400")).code == 0);
    command = mlp("generated", directory, "400");
    CHECK(interrupted(command, directory, "\"step\":10", SIGTERM).code == 143);
    check_resumed(command, directory, scratch / "whole");
    CHECK(interrupted(command, directory, "\"step\":10", SIGUSR1).code == 143);
    check_resumed(command, directory, whole);
  }
}

TEST_CASE("a full disk loses no earlier checkpoint", "[command]") {
  const Scratch scratch;
  const std::string directory = scratch / "run";
  REQUIRE(run_cinta(mlp("generated", directory)).code == 0);
  const auto before = contents(directory);
  // The weights of 64 x 32 + 32 x 10 numbers find room, the optimizer's state of twice the size does not.
  check_refused(mlp("generated", directory, "8") + Arguments{"--resume", "--report", "none"},
                {"optimizer.safetensors", "writing failed", "File too large"}, {.file_bytes = 12000});
  for (const auto& [name, bytes] : before) {
    INFO(name);
    if (name != "metrics.jsonl" && name != "env.json") CHECK(read_bytes(directory + "/" + name) == bytes);
  }
  for (const auto& entry : fs::directory_iterator(directory))
    CHECK(!entry.path().filename().string().starts_with('.'));  // nothing half-written
  CHECK(run_cinta(mlp("generated", directory, "8") + Arguments{"--resume"}).code == 0);
}

TEST_CASE("a folder of a corpus that cannot be listed is named", "[command]") {
  const Scratch scratch;
  fs::create_directory(scratch / "locked");
  write_bytes(scratch / "a.h", "int a;\n");
  fs::permissions(scratch.path(), fs::perms(0755));
  fs::permissions(scratch / "locked", fs::perms(0));
  if (!can_be_nobody())
    WARN("skipped: without root's rights the program cannot be started here");
  else
    check_refused({"train", "bert", "--data", scratch.path(), "--output_dir", "none", "--cache_dir", "none"},
                  {"locked: cannot be listed: Permission denied"}, {.nobody = root()});
  fs::permissions(scratch / "locked", fs::perms(0755));
}

TEST_CASE("a directory without permission loses no earlier checkpoint", "[command]") {
  const Scratch scratch;
  const std::string directory = scratch / "run";
  REQUIRE(run_cinta(mlp("generated", directory)).code == 0);
  const auto before = contents(directory);
  fs::permissions(scratch.path(), fs::perms(0755));
  fs::permissions(directory, fs::perms(0555));
  if (!can_be_nobody()) {
    WARN("skipped: without root's rights the program cannot be started here");
  } else {
    check_refused(mlp("generated", directory, "8") + Arguments{"--resume"}, {directory, "Permission denied"},
                  {.nobody = root()});
    check_refused(mlp("generated", directory + "/below"), {directory + "/below", "Permission denied"},
                  {.nobody = root()});
  }
  fs::permissions(directory, fs::perms(0755));
  for (const auto& [name, bytes] : before) {
    INFO(name);
    if (name != "metrics.jsonl" && name != "env.json") CHECK(read_bytes(directory + "/" + name) == bytes);
  }
}
