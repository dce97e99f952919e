// Lines of up to 100 MB where a line is read: a result or one clear error, in seconds of computing and with a few times
// the file's memory.
#include <catch2/catch.hpp>

#include "command_helpers.h"

using namespace cinta::testing;

namespace {

constexpr size_t some = 8'000'000;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // to be done in minutes
constexpr size_t hundred_megabytes = some;
#else
constexpr size_t hundred_megabytes = 100'000'000;
#endif

/// `before`, `unit` again and again until the line has `bytes`, `after`.
std::string write_line(const std::string& path, const std::string& unit, size_t bytes, const std::string& before = "",
                       const std::string& after = "\n") {
  std::string block;
  while (block.size() < (size_t{1} << 20)) block += unit;
  std::ofstream out(path, std::ios::binary);
  out << before;
  for (size_t written = 0; written < bytes; written += block.size()) out << block;
  out << after;
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
  return path;
}

/// What the children of this process have computed, in seconds.
double computed() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Runs `run`, which runs the program once, within bounds.
template <class Run>
void check_bounds(Run run, long most_kibibytes = 1'200'000) {
  [[maybe_unused]] const double before = computed();
  run();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they take time and memory of their own
  CHECK(computed() - before < 15);
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);  // of the largest child so far
  CHECK(used.ru_maxrss < most_kibibytes);
#endif
}

void check_long(const Arguments& arguments, const Parts& parts) {
  check_bounds([&] { check_refused(arguments, parts); });
}

/// A model of texts with two classes, and a file to learn it from.
struct Texts {
  Texts() {
    std::string csv = "text,label\n";
    for (int i = 0; i < 12; ++i) csv += "word" + std::to_string(i) + " [ ] here," + (i % 2 == 0 ? "a\n" : "b\n");
    write_bytes(scratch / "texts.csv", csv);
    trained = run_cinta(classify(scratch / "texts.csv", scratch / "model"));
  }
  static Arguments classify(const std::string& data, const std::string& directory) {
    return {"train", "classify",  "--data", data,      "--vocab_size", "60",      "--sequence_length", "8", "--threads",
            "1",     "--dropout", "0",      "--quiet", "--output_dir", directory, "--max_steps",       "2"};
  }
  Scratch scratch;
  Finished trained;
};

const Texts& texts() {
  static const Texts all;
  return all;
}

}  // namespace

TEST_CASE("a table with a line of 100 MB", "[command_long_lines]") {
  const Scratch scratch;
  const std::string path = scratch / "table.csv", start = "1,2,0\n";
  write_line(path, "a", hundred_megabytes, start);
  check_long(mlp(path, scratch / "run"), {path, "line 2: found 1 columns, expected 3"});
  write_line(path, "a", some, start + "1,2,");
  check_long(mlp(path, scratch / "run"), {path, "line 2: column 3", "\"aaaaaaaaaaaaaaaaaaaaaaaa...\""});
  write_line(path, "a", some, start + "\"");
  check_long(mlp(path, scratch / "run"), {path, "line 2: a quote is never closed"});
  write_line(path, "1,", size_t{5} * some, "", "1\n");
  check_long(mlp(path, scratch / "run"), {path, "line 1: found more than 16777216 columns"});
  CHECK(!std::filesystem::exists(scratch / "run"));
}

TEST_CASE("labelled text with a line of 100 MB", "[command_long_lines]") {
  const Scratch scratch;
  REQUIRE(texts().trained.code == 0);
  const std::string json = scratch / "texts.jsonl", table = scratch / "texts.tsv", run = scratch / "run";
  write_line(json, "[", hundred_megabytes, "{\"text\": ");
  check_long(Texts::classify(json, run), {json, "line 1: found lists and objects more than 64 deep"});
  write_line(json, "x", some, "{\"text\": \"a\", \"label\": \"b\"}\n{\"text\": \"");
  check_long(Texts::classify(json, run), {json, "line 2: is not JSON"});
  write_line(table, "x", some, "text\tlabel\n");
  check_long(Texts::classify(table, run), {table, "line 2: found 1 columns, expected 2"});
  CHECK(!std::filesystem::exists(run));

  write_line(json, "x ", some, "{\"text\": \"", "\", \"label\": \"a\"}\n");
  check_bounds([&] {
    const Finished evaluated = run_cinta({"eval", "--model", texts().scratch / "model", "--data", json});
    INFO(evaluated.error);
    CHECK(evaluated.code == 0);
    CHECK(evaluated.out.starts_with("eval_loss "));
  });
}

TEST_CASE("a vocabulary with a line of 100 MB", "[command_long_lines]") {
  const Scratch scratch;
  REQUIRE(texts().trained.code == 0);
  std::filesystem::copy(texts().scratch / "model", scratch / "model");
  write_line(scratch / "model/vocab.txt", "a", hundred_megabytes);
  const Arguments predict{"predict", "--text", "a", "--model", scratch / "model"};
  check_long(predict, {"vocab.txt", "has no [UNK] token among its 1"});
  write_line(scratch / "model/vocab.txt", "\xff", some, "[UNK]\n");
  check_long(predict, {"vocab.txt: line 2", "byte 0: found 0xff"});
  write_line(scratch / "model/config.json", "[", some);
  check_long(predict, {"config.json", "more than 64 deep"});
}

TEST_CASE("texts to predict with a line of megabytes", "[command_long_lines]") {
  const Scratch scratch;
  REQUIRE(texts().trained.code == 0);
  const std::string path = scratch / "lines";
  auto predicted = [&] {
    Finished finished;
    check_bounds([&] { finished = run_cinta({"predict", "--model", texts().scratch / "model", "--data", path}); });
    INFO(finished.error);
    CHECK(finished.code == 0);
    CHECK(std::ranges::count(finished.out, '\n') == 2);
    return finished.error;
  };
  write_line(path, "[", some, "word1\n");
  CHECK(predicted() == "1 of 2 texts are cut to the 8 tokens that the model takes\n");
  write_line(path, "x", some, "word1\n");  // one long word is one unknown token
  CHECK(predicted().empty());
  write_line(path, "\xe4\xb8\xad", some, "word1\n");
  CHECK(predicted().starts_with("1 of 2 texts are cut"));
  write_line(path, "x", some, "word1\n", "\xff\n");
  check_long({"predict", "--model", texts().scratch / "model", "--data", path}, {"found 0xff", "UTF-8"});
}

TEST_CASE("a corpus with a line of 100 MB, to train on or held out", "[command_long_lines]") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "text");
  write_bytes(scratch / "text/a", "int a; int b;\n");
  write_line(scratch / "text/b", "int ", hundred_megabytes);
  for (const char* seed : {"0", "2"}) {  // of the choice of the file that is held out
    Finished trained;
    check_bounds(
        [&] {
          trained = run_cinta({"train", "bert", "--data", scratch / "text", "--vocab_size", "40", "--sequence_length",
                               "64", "--max_steps", "2", "--threads", "1", "--output_dir", "", "--cache_dir", "none",
                               "--seed", seed});
        },
        1'500'000);  // the text, its tokens and its sequences
    INFO(trained.error);
    CHECK(trained.code == 0);
    if (hundred_megabytes > some)
      CHECK((trained.error.find("the first 10000 held-out sequences") != std::string::npos) == (*seed == '2'));
  }
}
