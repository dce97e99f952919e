// --final_sigma and --on_bad_utf8 wherever a command reads texts: what they change, what is kept, what is refused.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "command_helpers.h"
#include "saved_model.h"

using namespace cinta;
using namespace cinta::testing;
using Catch::Matchers::Contains;
using nlohmann::json;
using Ids = std::vector<int>;

namespace {

/// A masked-language model whose tokenizer lower-cases: 5 is α, 6 ##σ, 7 ##ς, then letters.
struct Model : Saved<models::BertForMaskedLM> {
  explicit Model(bool lower_case = true) : Saved(1, tokenizer(lower_case)) {}
  static data::WordPiece tokenizer(bool lower_case) {
    std::vector<std::string> tokens{"α", "##σ", "##ς"};
    for (char letter = 'A'; letter <= 'Z'; ++letter) tokens.emplace_back(1, letter);
    return data::WordPiece(with_specials(tokens), {lower_case, lower_case});
  }
  Ids ids(const std::string& text, const Arguments& more) const {
    const Finished finished = run_cinta(Arguments{"tokenize", text, "--model", directory, "--json"} + more);
    INFO(finished.error);
    REQUIRE(finished.code == 0);
    return json::parse(finished.out)["input_ids"].get<Ids>();
  }
};

Finished succeeds(const Arguments& arguments) {
  Finished finished = run_cinta(arguments);
  INFO(finished.error);
  CHECK(finished.code == 0);
  return finished;
}

void refused(const Arguments& arguments, const std::string& part) {
  const Finished finished = run_cinta(arguments);
  CHECK(finished.code == 2);
  CHECK_THAT(finished.error, Contains(part));
}

}  // namespace

TEST_CASE("--final_sigma changes the tokens, and a model fine-tuned with it keeps it", "[command]") {
  const Model model;
  CHECK(model.ids("ΑΣ", {}) == Ids{2, 5, 6, 3});
  CHECK(model.ids("ΑΣ", {"--final_sigma"}) == Ids{2, 5, 7, 3});
  const std::string csv = model.scratch / "texts.csv", tuned = model.scratch / "tuned";
  write_bytes(csv, "text,label\nΑΣ,x\nΑ,y\nΑΣ Α,x\nΑ Α,y\n");
  const Arguments train{"train",         "classify",    "--data", csv,       "--model",
                        model.directory, "--max_steps", "1",      "--quiet", "--test_fraction",
                        "0.5",           "--threads",   "1"};
  succeeds(train + Arguments{"--output_dir", tuned, "--final_sigma"});
  CHECK(data::load_wordpiece(tuned).options().final_sigma);
  const Finished kept = succeeds({"tokenize", "ΑΣ", "--model", tuned, "--json"});
  CHECK(json::parse(kept.out)["input_ids"] == Ids{2, 5, 7, 3});
  succeeds(train + Arguments{"--output_dir", model.scratch / "plain"});
  CHECK(!data::load_wordpiece(model.scratch / "plain").options().final_sigma);

  const std::string flag = "--final_sigma";
  CHECK(succeeds({"eval", "--data", csv, "--model", tuned}).out ==
        succeeds({"eval", "--data", csv, "--model", tuned, flag}).out);
  CHECK(succeeds({"fill", "ΑΣ [MASK]", "--model", model.directory, "--json"}).out !=
        succeeds({"fill", "ΑΣ [MASK]", "--model", model.directory, "--json", flag}).out);
  CHECK(succeeds({"predict", "--text", "ΑΣ", "--model", tuned, "--json"}).out ==
        succeeds({"predict", "--text", "ΑΣ", "--model", tuned, "--json", flag}).out);
  refused({"train", "classify", "--data", csv, "--test_fraction", "0.5", flag},
          "--final_sigma is for a --model whose tokenizer lower-cases");
  const Model cased(false);
  refused({"tokenize", "ΑΣ", "--model", cased.directory, flag}, "keeps capitals");
}

TEST_CASE("--on_bad_utf8 replace reads what is otherwise refused", "[command]") {
  const Model model;
  const Scratch scratch;
  const Arguments replace{"--on_bad_utf8", "replace"};
  CHECK(model.ids("\xe9"
                  "Α\xff",
                  replace) == model.ids("Α", {}));
  const std::string csv = scratch / "texts.csv", lines = scratch / "lines", folder = scratch / "folder",
                    classes = scratch / "classes";
  write_bytes(csv, "text,label\nΑΣ,x\nΑ\xe9,y\nΑΣ Α,x\nΑ Α,y\n");
  write_bytes(lines, "Α\xff\n");
  std::filesystem::create_directory(folder);
  for (const char* name : {"a", "b", "c"}) {
    std::string text;
    for (int i = 0; i < 200; ++i) text += std::string(name) + std::to_string(i) + " Α \xff;\n";
    write_bytes(folder + "/" + name, text);
  }
  const std::string error = "which is not UTF-8";
  refused({"tokenize", "a\xff", "--model", model.directory}, "text: byte 1: found 0xff, " + error);
  for (const Arguments& arguments :
       {Arguments{"train", "classify", "--data", csv, "--model", model.directory, "--max_steps", "1", "--quiet",
                  "--output_dir", classes, "--test_fraction", "0.5", "--threads", "1"},
        Arguments{"train", "bert", "--data", folder, "--max_steps", "1", "--quiet", "--sequence_length", "16",
                  "--vocab_size", "100", "--output_dir", scratch / "bert", "--threads", "1"},
        Arguments{"eval", "--data", csv, "--model", classes},
        Arguments{"eval", "--data", folder, "--model", model.directory},
        Arguments{"predict", "--data", lines, "--model", classes},
        Arguments{"predict", "--text", "Α\xff", "--model", classes},
        Arguments{"fill", "Α\xff [MASK]", "--model", model.directory, "--json"}}) {
    INFO(arguments[0] << " " << arguments[1] << " " << arguments[2]);
    refused(arguments, error);
    succeeds(arguments + replace);
  }
  refused({"tokenize", "a", "--model", model.directory, "--on_bad_utf8", "drop"}, "drop");
}
