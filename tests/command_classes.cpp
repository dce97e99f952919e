// Which classes `cinta train classify --model` trains: a head's rows stay with their names, or there is a new head.
#include <catch2/catch.hpp>

#include "cinta/data/labelled_text.h"
#include "cinta/train/text_classes.h"
#include "command_helpers.h"
#include "saved_model.h"

using namespace cinta;
using namespace cinta::testing;
using Catch::Matchers::Contains;

namespace {

using Words = std::vector<std::string>;

/// A classifier of three classes, and what a training that hardly moves makes of it.
struct Given : Saved<models::BertForSequenceClassification> {
  const std::string texts = scratch / "texts.csv", tuned = scratch / "tuned";
  explicit Given(const Words& names) : Saved(1, data::WordPiece(letters())) {
    models::BertConfig config = model.config();
    config.label_names = names;
    write_bytes(directory + "/config.json", config.to_json(model.architecture()));
  }
  Finished train(const Words& labels) const {
    std::string csv = "text,label\n";
    for (size_t i = 0; i < 30; ++i) csv += std::string("a b,") + labels[i % labels.size()] + "\n";
    write_bytes(texts, csv);
    Finished finished = run_cinta({"train", "classify", "--data", texts, "--model", directory, "--output_dir", tuned,
                                   "--max_steps", "1", "--learning_rate", "1e-9", "--threads", "1"});
    INFO(finished.error);
    REQUIRE(finished.code == 0);
    return finished;
  }
  Words names() const { return train::class_names(models::read_config(tuned)); }
  /// Whether the head that was trained is, but for that one step, the model's.
  bool kept_head() const {
    const Tensor before = read_tensors(directory + "/model.safetensors").at("classifier.weight"),
                 after = read_tensors(tuned + "/model.safetensors").at("classifier.weight");
    if (before.shape() != after.shape()) return false;
    const std::vector<float> left = to_vector<float>(before), right = to_vector<float>(after);
    for (size_t i = 0; i < left.size(); ++i)
      if (std::abs(left[i] - right[i]) > 1e-8F) return false;
    return true;
  }
};

}  // namespace

TEST_CASE("training on keeps the order of a classifier's classes, also of those that the data lacks", "[command]") {
  const Given given({"pos", "so", "neg"});
  for (const Words& labels : {Words{"pos", "so", "neg"}, Words{"neg", "pos"}}) {
    const Finished finished = given.train(labels);
    CHECK(!Contains("classes (").match(finished.error));
    CHECK(given.names() == Words{"pos", "so", "neg"});
    CHECK(given.kept_head());
    std::filesystem::remove_all(given.tuned);
  }
}

TEST_CASE("classes without names take the data's labels in order, and that is told", "[command]") {
  const Given given({});
  CHECK_THAT(given.train({"pos", "neg", "so"}).error,
             Contains("model: its classes have no names; in their order they are taken to be neg, pos, so\n"));
  CHECK(given.names() == Words{"neg", "pos", "so"});
  CHECK(given.kept_head());
}

TEST_CASE("labels that are the numbers of classes without names stand for these", "[command]") {
  const Given given({});
  const std::string file = given.scratch / "numbers.csv";
  auto accuracy = [&](const std::string& csv) {
    write_bytes(file, csv);
    const Finished finished = run_cinta({"eval", "--model", given.directory, "--data", file, "--json"});
    INFO(finished.error);
    REQUIRE(finished.code == 0);
    return finished.out;
  };
  const std::string named = accuracy("text,label\na b,LABEL_2\nb,LABEL_1\n");
  const std::string numbered = accuracy("text,label\na b,2\nb,1\n");
  CHECK(accuracy("a b,2\nb,1\n") == numbered);  // without a header, each label once
  const auto numbers = [](const std::string& json) { return json.substr(0, json.find("labels")); };
  CHECK(numbers(named) == numbers(numbered));
  CHECK_THAT(numbered, Contains("eval_accuracy"));
  CHECK_THAT(given.train({"0", "2"}).error, Contains("in their order they are taken to be 0, 1, 2\n"));
  CHECK(given.kept_head());
}

TEST_CASE("a training is gone on with for the same classes and the same weights alone", "[command]") {
  const Given given({});
  given.train({"neg", "pos"});
  auto resume = [&](const std::string& labels, Arguments more) {
    std::string csv = "text,label\n";
    for (size_t i = 0; i < 30; ++i) csv += "a b," + (i % 2 ? labels : "neg") + "\n";
    write_bytes(given.texts, csv);
    Arguments command{
        "train",     "classify", "--quiet",     "--data", given.texts, "--model", given.directory,   "--output_dir",
        given.tuned, "--resume", "--max_steps", "1",      "--threads", "1",       "--learning_rate", "1e-9"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  };
  CHECK(run_cinta(resume("pos", {})).code == 0);
  check_refused(resume("sop", {}), {"data_crc32", "begun with"});
  check_refused(resume("pos", {"--train", "head"}), {"trained \"head\", begun with \"all\""});
}

TEST_CASE("labels that a classifier does not know get a new head, and that is told", "[command]") {
  for (const Words& labels : {Words{"0", "1", "2"}, Words{"neg", "other", "pos"}, Words{"a", "b"}}) {
    const Given given({"pos", "so", "neg"});
    CHECK_THAT(given.train(labels).error,
               Contains("model: its classes (pos, so, neg) are not the data's (" + data::first_few(labels) +
                        "), for which a new classifier is learnt\n"));
    CHECK(given.names() == labels);
    CHECK(!given.kept_head());
  }
  const Given unnamed({});
  CHECK_THAT(unnamed.train({"a", "b"}).error, Contains("(LABEL_0, LABEL_1, LABEL_2) are not the data's (a, b)"));
  CHECK(!unnamed.kept_head());
}

TEST_CASE("the classes are those of the whole file, whatever is held out", "[command]") {
  const Given given({});
  std::string csv = "text,label\n";
  for (int i = 0; i < 20; ++i) csv += i % 2 ? "a,neg\n" : "b,pos\n";
  write_bytes(given.texts, csv + "c,neutral\n");
  auto command = [&](const std::string& seed) {
    return Arguments{"train",           "classify", "--data",    given.texts, "--seed",       seed,
                     "--test_fraction", "0.5",      "--size",    "tiny",      "--output_dir", given.tuned,
                     "--max_steps",     "1",        "--threads", "1",         "--quiet"};
  };
  for (const char* seed : {"0", "1", "2", "3", "4", "5"}) {  // the one sample is trained on or held out
    const Finished finished = run_cinta(command(seed));
    INFO(finished.error);
    CHECK(finished.code == 0);
    CHECK(given.names() == Words{"neg", "neutral", "pos"});
    std::filesystem::remove_all(given.tuned);
  }
  write_bytes(given.scratch / "test.csv", "text,label\na,neg\nb,other\n");
  check_refused({"train", "classify", "--data", given.texts, "--test_data", given.scratch / "test.csv"},
                {"test.csv: line 3 has the label 'other', which is none of the model's 3: neg, neutral, pos"});
}

TEST_CASE("a model of one segment type takes no pairs, and a test part has the form of the training part",
          "[command]") {
  const Given given({"x", "y", "z"});
  const std::string pairs = given.scratch / "pairs.csv", singles = given.scratch / "singles.csv";
  std::string first = "text,pair,label\n", second = "text,label\n";
  for (int i = 0; i < 10; ++i) first += i % 2 ? "a,b,x\n" : "c,d,y\n", second += i % 2 ? "a,x\n" : "c,y\n";
  write_bytes(pairs, first);
  write_bytes(singles, second);
  const Arguments train{"train", "classify", "--output_dir", given.tuned};
  check_refused(train + Arguments{"--data", pairs, "--test_data", singles},
                {"singles.csv: holds single texts, ", "pairs.csv holds pairs of texts"});
  check_refused(train + Arguments{"--data", singles, "--test_data", pairs}, {"pairs.csv: holds pairs of texts, "});

  models::BertConfig config = models::read_config(given.directory);
  config.type_vocab_size = 1;
  write_bytes(given.directory + "/config.json", config.to_json(given.model.architecture()));
  const Parts one_type{"pairs.csv: holds pairs of texts; the model has one segment type"};
  const Arguments model{"--model", given.directory, "--data", pairs};
  check_refused(train + model, one_type);
  check_refused(Arguments{"eval"} + model, one_type);
  check_refused(Arguments{"predict"} + model, one_type);
  check_refused({"predict", "--model", given.directory, "--text", "a", "--text_pair", "b"},
                {"--text_pair: holds pairs"});
  CHECK(!std::filesystem::exists(given.tuned));
}
