// What goes wrong before `cinta` can work: files that are missing, directories, empty or closed to the user, options
// out of range, another model's labels and configuration, a second run in a directory, a disk that is full. Each is
// refused in one line with exit code 2, and leaves what was there.
#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "command_helpers.h"
#include "crash.h"

using namespace cinta::testing;
namespace fs = std::filesystem;

namespace {

/// Trained models of two kinds and good inputs of every kind.
struct Models {
  Models() {
    std::string csv = "text,label\n";
    for (int i = 0; i < 12; ++i) csv += "word" + std::to_string(i) + " here," + (i % 2 == 0 ? "a\n" : "b\n");
    write_bytes(texts, csv);
    write_bytes(images, std::string("\0\0\x08\3\0\0\0\x14\0\0\0\2\0\0\0\2", 16) + std::string(80, '\1'));
    write_bytes(labels, std::string("\0\0\x08\1\0\0\0\x14", 8) + std::string(20, '\0'));
    perceptron = run_cinta(mlp("generated", mlp_model) + Arguments{"--save_steps", "2"});
    classifier = run_cinta(classify(texts, classify_model));
    fs::permissions(scratch.path(), fs::perms(0755));
  }
  static Arguments classify(const std::string& data, const std::string& directory) {
    return {"train", "classify", "--data",       data,      "--vocab_size", "60", "--sequence_length", "8", "--threads",
            "1",     "--quiet",  "--output_dir", directory, "--max_steps",  "2"};
  }
  Scratch scratch;
  std::string texts = scratch / "texts.csv", images = scratch / "images", labels = scratch / "labels",
              mlp_model = scratch / "mlp", classify_model = scratch / "classify";
  Finished perceptron, classifier;
};

const Models& models() {
  static const Models all;
  return all;
}

/// The four ways in which a file cannot be used; `path` is empty for the last one, `empty` is what is said of it.
void check_file(const std::string& path, const std::string& empty, const std::function<Arguments()>& command) {
  fs::remove_all(path);
  check_refused(command(), {path, "cannot be opened: No such file or directory"});
  fs::create_directory(path);
  check_refused(command(), {path, "is a directory"});
  fs::remove(path);
  write_bytes(path, "");
  if (!empty.empty()) check_refused(command(), {path, empty});
  if (!can_be_nobody()) {
    WARN("skipped: without root's rights the program cannot be started here");
    return;
  }
  fs::permissions(path, fs::perms::none);
  check_refused(command(), {path, "cannot be opened: Permission denied"}, {.nobody = root()});
}

constexpr const char *last = "9223372036854775807", *past_the_last = "9223372036854775808";
const std::string no_json = "is not JSON";
const std::string no_header = "found 0 bytes, expected at least 8";

}  // namespace

TEST_CASE("files that are missing, directories, empty or closed", "[command_bad_input]") {
  const Models& all = models();
  REQUIRE(all.perceptron.code == 0);
  REQUIRE(all.classifier.code == 0);
  const Scratch scratch;
  fs::permissions(scratch.path(), fs::perms(0755));
  const std::string run = scratch / "run", file = scratch / "file", csv = scratch / "file.csv";
  struct Case {
    std::string path, empty;
    Arguments command;
  };
  const Arguments generated = mlp("generated", run), predict{"predict", "--model", all.classify_model};
  for (const Case& one : std::vector<Case>{
           {file, "has no row", mlp(file, run)},
           {file, "byte 0: found 0 bytes", mlp(file, run) + Arguments{"--labels", all.labels}},
           {file, "byte 0: found 0 bytes", mlp(all.images, run) + Arguments{"--labels", file}},
           {file, no_json, generated + Arguments{"--config", file}},
           {file, no_json, generated + Arguments{"--params", file}},
           {file, "is empty", {"train", "characters", "--data", file, "--output_dir", run}},
           {csv, "has no sample", Models::classify(csv, run)},
           {csv, "has no sample", Models::classify(all.texts, run) + Arguments{"--test_data", csv}},
           {file, "has no row", {"eval", "--model", all.mlp_model, "--data", file}},
           {csv, "has no sample", {"eval", "--model", all.classify_model, "--data", csv}},
           {file, "has no row", {"predict", "--model", all.mlp_model, "--data", file}},
           {file, "has no sample", predict + Arguments{"--data", file}},
           {file, no_header, predict + Arguments{"--input_ids", file}},
           {file, no_json, {"tune", "--space", file, "--sampler", "random", "--output_dir", run, "--", "mlp"}}})
    check_file(one.path, one.empty, [&] { return one.command; });
  CHECK(!fs::exists(run));

  // here a directory is a model, or a folder of texts
  for (const Arguments& command :
       {Arguments{"inspect", file}, {"inspect", all.mlp_model, "--diff", file}, {"convert", file, run}}) {
    fs::remove_all(file);
    check_refused(command, {file, "No such file"});
    fs::create_directory(file);
    check_refused(command, {file + "/model.safetensors", "No such file"});
    fs::remove(file);
    write_bytes(file, "");
    check_refused(command, {file, no_header});
  }
  const Arguments bert{"train", "bert", "--output_dir", run, "--data", file};
  check_refused(bert, {file, "holds no text"});
  write_bytes(file, std::string("t\0e\0x\0t\0", 8));
  check_refused(bert, {file, "has NUL bytes: expected text in UTF-8, not UTF-16"});
  write_bytes(file, "word");
  check_refused(bert, {"needs at least two documents", file.substr(file.rfind('/') + 1)});
  write_bytes(file, "hello world\n\nfoo bar\n");
  check_refused(bert + Arguments{"--vocab_size", "200", "--sequence_length", "32", "--cache_dir", "none", "--quiet"},
                {"the text to evaluate on has no token to guess"});
  fs::remove(file);
  check_refused(bert, {file, "No such file"});
  fs::create_directory(file);
  check_refused(bert, {file, "holds no text"});
  CHECK(!fs::exists(run));
}

TEST_CASE("a model's files that are missing, directories, empty or closed", "[command_bad_input]") {
  const Models& all = models();
  const Scratch scratch;
  fs::permissions(scratch.path(), fs::perms(0755));
  const std::string copy = scratch / "model";
  struct Case {
    const char* file;
    std::string empty;
  };
  for (const Case& one : std::vector<Case>{
           {"model.safetensors", no_header}, {"config.json", no_json}, {"vocab.txt", "has no [UNK] token"}}) {
    fs::remove_all(copy);
    fs::copy(all.classify_model, copy, fs::copy_options::recursive);
    check_file(copy + "/" + one.file, one.empty, [&] { return Arguments{"predict", "--model", copy, "--text", "a"}; });
  }
  for (const Case& one : std::vector<Case>{{"model.safetensors", no_header}, {"config.json", no_json}}) {
    fs::remove_all(copy);
    fs::copy(all.mlp_model, copy, fs::copy_options::recursive);
    check_file(copy + "/" + one.file, one.empty, [&] {
      return Arguments{"eval", "--model", copy, "--data", "generated"};
    });
  }
}

TEST_CASE("places that cannot be written to", "[command_bad_input]") {
  const Models& all = models();
  const Scratch scratch;
  const std::string file = scratch / "file", folder = scratch / "folder", below = file + "/below",
                    run = scratch / "run";
  write_bytes(file, "what was there");
  fs::create_directory(folder);
  const Arguments predict{"predict", "--model", all.classify_model, "--text", "a", "--output_logits"};
  check_refused(mlp("generated", file), {file, "Not a directory"});
  check_refused(mlp("generated", below), {below, "Not a directory"});
  for (const Arguments& command : {mlp("generated", scratch / std::string(300, 'x')),
                                   {"inspect", scratch / std::string(300, 'x')},
                                   {"convert", all.mlp_model, scratch / std::string(300, 'x')}})
    check_refused(command, {std::string(300, 'x'), "File name too long"});
  check_refused(predict + Arguments{folder}, {folder, "is a directory, expected a file"});
  check_refused(predict + Arguments{below}, {file, "Not a directory"});
  check_refused(predict + Arguments{folder + "/no/logits"}, {folder + "/no/", "No such file"});
  check_refused({"convert", all.mlp_model, below}, {file, "Not a directory"});
  check_refused(mlp("generated", run) + Arguments{"--result", folder}, {folder, "is a directory, expected a file"});
  check_refused(mlp("generated", run) + Arguments{"--result", folder + "/no/r.json"}, {"there is no directory"});
  CHECK(!fs::exists(run));
  CHECK(fs::is_empty(folder));
  CHECK(read_bytes(file) == "what was there");
}

TEST_CASE("options out of range are refused in one line before anything is written", "[command_bad_input]") {
  const Scratch scratch;
  check_refused({}, {"subcommand"});
  check_refused({"train", "mlp"}, {"--data"});
  struct Case {
    const char *option, *value;
    Parts parts;
  };
  const auto train = [](const std::string& data, const std::string& directory) {
    return Arguments{"train", "mlp", "--data", data, "--output_dir", directory, "--quiet"};
  };
  for (const Case& one :
       std::vector<Case>{{"--frobnicate", "1", {"--frobnicate"}},
                         {"--seed", "-1", {"--seed", "-1"}},
                         {"--seeds", "0", {"--seeds", "at least 1"}},
                         {"--batch_size", "-4", {"batch size", "-4"}},
                         {"--batch_size", "many", {"batch_size", "many"}},
                         {"--threads", "-1", {"--threads", "-1"}},
                         {"--threads", "100000", {"--threads", "100000"}},
                         {"--save_steps", "-1", {"save_steps"}},
                         {"--eval_steps", "-1", {"eval_steps"}},
                         {"--max_grad_norm", "-1", {"max_grad_norm"}},
                         {"--num_train_epochs", "-2", {"num_train_epochs", "-2"}},
                         {"--learning_rate", "-0.1", {"rate", "-0.1"}},
                         {"--learning_rate", "nan", {"rate", "nan"}},
                         {"--lr_scheduler_type", "steps", {"steps", "cosine"}},
                         {"--gradient_checkpointing", "sqrt", {"sqrt", "MLP"}},
                         {"--device", "abacus", {"abacus", "available: cpu"}},
                         {"--max_steps", "0", {"--max_steps", "at least 1, or -1", "0"}},
                         {"--max_steps", "1e3", {"--max_steps", "1e3"}},
                         {"--num_train_epochs", "nan", {"--num_train_epochs", "nan"}},
                         {"--per_device_train_batch_size", "0", {"batch size", "given 0"}},
                         {"--gradient_accumulation_steps", "0", {"gradient_accumulation_steps", "positive", "0"}},
                         {"--warmup_steps", "-1", {"--warmup_steps", "at least 0", "-1"}},
                         {"--warmup_steps", "1.5", {"--warmup_steps", "a whole number", "1.5"}},
                         {"--weight_decay", "-1", {"weight decay", "-1"}},
                         {"--weight_decay", "inf", {"weight decay", "inf"}},
                         {"--adam_beta1", "1", {"betas", "1"}},
                         {"--adam_beta2", "-0.1", {"betas", "-0.1"}},
                         {"--adam_epsilon", "0", {"eps", "0"}},
                         {"--max_grad_norm", "nan", {"max_grad_norm"}},
                         {"--logging_steps", "0", {"--logging_steps", "at least 1", "0"}},
                         {"--eval_strategy", "sometimes", {"--eval_strategy", "no,steps,epoch"}},
                         {"--save_strategy", "never", {"--save_strategy", "no,steps,epoch,best"}},
                         {"--save_total_limit", "-1", {"--save_total_limit", "-1"}},
                         {"--fast_dev_run", "-1", {"--fast_dev_run", "-1"}},
                         {"--overfit_batches", "-1", {"--overfit_batches", "-1"}},
                         {"--learning_rate", "inf", {"rate", "inf"}},
                         {"--lr_scheduler_type", "", {"constant, linear, cosine"}},
                         {"--hidden", "8,x", {"--hidden", "widths are numbers", "'8,x'"}},
                         {"--hidden", "64,,64", {"--hidden", "widths are numbers", "'64,,64'"}},
                         {"--hidden", "64,", {"--hidden", "widths are numbers", "'64,'"}},
                         {"--hidden", "", {"--hidden", "widths are numbers", "''"}},
                         {"--hidden", "64 64", {"--hidden", "widths are numbers", "'64 64'"}},
                         {"--hidden", "0", {"--hidden", "at least 1", "'0'"}},
                         {"--trace_steps", "x", {"--trace_steps is FIRST:LAST", "'x'"}},
                         {"--report", "pdf", {"--report", "html,none"}},
                         {"--device", "cuda:9", {"'cuda:9' is not built", "available: cpu"}},
                         {"--seed", "1.5", {"--seed", "1.5"}},
                         {"--seed", "18446744073709551616", {"--seed", "at most 64 bits"}},
                         {"--max_steps", past_the_last, {"--max_steps", "less than 2^63", past_the_last}},
                         {"--batch_size", past_the_last, {"batch_size", "less than 2^63", past_the_last}},
                         {"--gradient_accumulation_steps", past_the_last, {"accumulation_steps", "less than 2^63"}},
                         {"--batch_size", last, {"--per_device_train_batch_size", "at most 16777216 samples", last}},
                         {"--gradient_accumulation_steps", last, {"--gradient_accumulation_steps", last}},
                         {"--gradient_accumulation_steps", "262145", {"262145", "at most 16777216 samples", "64"}},
                         {"--output", "x", {"--output"}}})
    check_refused_early(scratch, train, "generated", {one.option, one.value}, one.parts);
  check_refused_early(scratch, train_mlp, "generated", {"--warmup_steps", "5"}, {"warm-up 5", "total 4"});
  for (const char* value : {"x", "patience=0", "patience=-1", "patience=2,min_delta=x", "min_delta=nan"})
    check_refused_early(scratch, train, "generated", {"--eval_steps", "5", "--early_stopping", value}, {"patience"});
  fs::create_directory(scratch / "text");
  write_bytes(scratch / "text/a", "int a;\nint b;\n");
  write_bytes(scratch / "text/b", "float c;\nwhile\n");
  const auto bert = [](const std::string& data, const std::string& directory) {
    return Arguments{"train", "bert", "--data", data, "--output_dir", directory, "--max_steps", "2", "--quiet"};
  };
  for (const Case& one :
       std::vector<Case>{{"--size", "huge", {"huge", "tiny, mini, small"}},
                         {"--dropout", "1.5", {"dropout", "1.5"}},
                         {"--gradient_checkpointing", "often", {"often", "every:N"}},
                         {"--sequence_length", "2", {"[CLS], a token and [SEP]", "2"}},
                         {"--vocab_size", "7", {"a vocabulary of 7", "special tokens and characters"}},
                         {"--vocab_size", past_the_last, {"--vocab_size", "less than 2^63"}},
                         {"--sequence_length", past_the_last, {"--sequence_length", "less than 2^63"}},
                         {"--sequence_length", last, {"max_position_embeddings lies in", last}},
                         {"--sequence_length", "-9223372036854775809", {"--sequence_length", "at least -2^63"}},
                         {"--dropout", "1", {"dropout", "1"}},
                         {"--initializer_range", "-1", {"--initializer_range", "-1"}},
                         {"--gradient_checkpointing", "every:0", {"every:N", "every:0"}}})
    check_refused_early(scratch, bert, scratch / "text", {one.option, one.value}, one.parts);
}

TEST_CASE("labels and configurations of another model", "[command_bad_input]") {
  const Models& all = models();
  const Scratch scratch;
  const std::string other = scratch / "other.csv", mixed = scratch / "mixed";
  write_bytes(other, "text,label\nword1 here,a\nword2 here,z\n");
  for (const char* seed : {"-1", "18446744073709551616", "1.5"})
    check_refused({"eval", "--model", all.classify_model, "--data", all.texts, "--seed", seed},
                  {"--seed", "a whole number of at most 64 bits", seed});
  const Parts unknown{other, "line 3 has the label 'z', which is none of the model's 2: a, b"};
  check_refused({"eval", "--model", all.classify_model, "--data", other}, unknown);
  check_refused(Models::classify(all.texts, scratch / "run") + Arguments{"--test_data", other}, unknown);
  std::string row;
  for (int i = 0; i < 64; ++i) row += "1,";
  write_bytes(other, row + "10\n");
  check_refused({"eval", "--model", all.mlp_model, "--data", other}, {other, "line 1: column 65: found 10", "[0, 10)"});

  fs::copy(all.mlp_model, mixed, fs::copy_options::recursive);
  fs::copy_file(all.classify_model + "/config.json", mixed + "/config.json", fs::copy_options::overwrite_existing);
  fs::copy_file(all.classify_model + "/vocab.txt", mixed + "/vocab.txt");
  check_refused({"predict", "--model", mixed, "--text", "a"},
                {mixed + "/model.safetensors", "bert.embeddings.word_embeddings.weight", "is not in the file"});
  fs::copy_file(all.classify_model + "/model.safetensors", mixed + "/model.safetensors",
                fs::copy_options::overwrite_existing);
  fs::copy_file(all.mlp_model + "/config.json", mixed + "/config.json", fs::copy_options::overwrite_existing);
  check_refused({"eval", "--model", mixed, "--data", "generated"},
                {mixed + "/model.safetensors", "layers.0.weight", "is not in the file"});

  const auto before = contents(all.mlp_model);
  Arguments wider = mlp("generated", all.mlp_model, "8");
  *std::ranges::find(wider, "32") = "24";
  check_refused(wider + Arguments{"--resume"}, {"checkpoint-4", "layers.0.weight", "[32,64]", "[24,64]"});
  CHECK(contents(all.mlp_model) == before);
}

TEST_CASE("a second run in a directory is refused and the first one ends as if alone", "[command_bad_input]") {
  const Scratch scratch;
  const std::string directory = scratch / "run", alone = scratch / "alone";
  const Arguments long_run = mlp("generated", directory, "2500");
  Child first(long_run);
  while (first.running() && !holds(directory + "/metrics.jsonl", "\"step\":5,"))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  first.send(SIGSTOP);  // so that it has not ended before the others have begun
  for (const Arguments& more : {Arguments{}, {"--overwrite"}, {"--resume"}})
    check_refused(long_run + more, {directory, "another"});
  CHECK(first.running());
  first.send(SIGCONT);
  CHECK(first.wait().code == 0);
  REQUIRE(run_cinta(mlp("generated", alone, "2500")).code == 0);
  for (const char* name : {"model.safetensors", "metrics.jsonl"})
    CHECK(read_bytes(directory + "/" + name) == read_bytes(alone + "/" + name));
}

TEST_CASE("a small disk that is full loses no earlier checkpoint", "[command_bad_input]") {
  const Scratch scratch, report;
  constexpr int cannot_mount = 2;
  const int status = in_child([&] {
    // a name space of its own, so that the small disk goes with this process
    if (::unshare(CLONE_NEWNS | (root() ? 0 : CLONE_NEWUSER)) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", scratch.path().c_str(), "tmpfs", 0, "size=2m") != 0)
      ::_exit(cannot_mount);
    std::string fault;
    auto expect = [&](bool good, const std::string& what) { fault += good ? "" : what + "\n"; };
    const std::string directory = scratch / "run";
    const Arguments more{"--report", "none"};
    expect(run_cinta(mlp("generated", directory) + more).code == 0, "the first run");
    const auto before = contents(directory);
    const auto room = fs::space(scratch.path()).available;
    write_bytes(scratch / "filler", std::string(room - 16384, 'f'));  // room for the weights alone
    const Finished full = run_cinta(mlp("generated", directory, "8") + more + Arguments{"--resume"});
    expect(full.code == 2, "code " + std::to_string(full.code));
    expect(full.error.starts_with("cinta: ") && std::ranges::count(full.error, '\n') == 1 &&
               full.error.find(directory) != full.error.npos &&
               full.error.find("No space left on device") != full.error.npos,
           "message: " + full.error);
    for (const auto& [name, bytes] : before)
      if (name != "metrics.jsonl" && name != "env.json")
        expect(read_bytes(directory + "/" + name) == bytes, name + " has changed");
    for (const auto& entry : fs::directory_iterator(directory))
      expect(!entry.path().filename().string().starts_with('.'), entry.path().string() + " is half-written");
    fs::remove(scratch / "filler");
    expect(run_cinta(mlp("generated", directory, "8") + more + Arguments{"--resume"}).code == 0, "going on");
    expect(holds(directory + "/metrics.jsonl", "\"step\":8"), "the rest of the run");
    write_bytes(report / "fault", fault);
  });
  if (status == cannot_mount) {
    WARN("skipped: this process may not mount a small disk");
    return;
  }
  REQUIRE(status == 0);
  CHECK(read_bytes(report / "fault").empty());
}
