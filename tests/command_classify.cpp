// `cinta train classify` from outside: the confusion reported, also by `cinta eval`, and what `--train head` leaves
// alone.
#include <catch2/catch.hpp>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cinta/train/text_classify_task.h"
#include "command_helpers.h"
#include "saved_model.h"

using namespace cinta;
using namespace cinta::testing;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

/// A pre-trained model with both heads, and texts of two classes: with b or without.
struct Given : Saved<models::BertForPreTraining> {
  const std::string texts = scratch / "texts.csv", tuned = scratch / "tuned";
  Given() : Saved(1, data::WordPiece(letters())) {
    std::string csv = "text,label\n";
    for (int i = 0; i < 50; ++i) csv += std::string(1, char('c' + i % 7)) + (i % 3 == 0 ? " b,with\n" : " a,without\n");
    write_bytes(texts, csv);
  }
  Finished train(const Arguments& more) const {
    Finished finished =
        run_cinta(Arguments{"train", "classify", "--data", texts, "--model", directory, "--output_dir", tuned,
                            "--test_fraction", "0.2", "--learning_rate", "1e-2", "--threads", "1", "--quiet"} +
                  more);
    INFO(finished.error);
    REQUIRE(finished.code == 0);
    return finished;
  }
};

/// What the report's numbers say, computed from its matrix.
void check_confusion(const json& report, int64_t samples) {
  CHECK(report["labels"] == json{"with", "without"});
  REQUIRE(report["confusion_matrix"].size() == 2);
  train::Confusion confusion{2, {}};
  for (const json& row : report["confusion_matrix"])
    for (const json& count : row) confusion.counts.push_back(count.get<int64_t>());
  REQUIRE(confusion.counts.size() == 4);
  CHECK(confusion.counts[0] + confusion.counts[1] + confusion.counts[2] + confusion.counts[3] == samples);
  CHECK(report["eval_accuracy"] == confusion.accuracy());
  CHECK(report["eval_macro_f1"] == confusion.macro_f1());
}

/// The names of the tensors whose bytes differ, or that only one of them has.
std::vector<std::string> changed(const std::string& before, const std::string& after) {
  const auto left = read_tensors(before + "/model.safetensors"), right = read_tensors(after + "/model.safetensors");
  std::vector<std::string> out;
  for (const auto& [name, tensor] : right) {
    const auto found = left.find(name);
    if (found == left.end() || found->second.shape() != tensor.shape() ||
        std::memcmp(found->second.view().data, tensor.view().data, static_cast<size_t>(tensor.bytes())) != 0)
      out.push_back(name);
  }
  return out;
}

}  // namespace

TEST_CASE("training a classifier and evaluating it report accuracy, macro F1 and who was taken for whom", "[command]") {
  const Given given;
  const json trained = json::parse(given.train({"--max_steps", "1", "--json"}).out);
  check_confusion(trained, 10);
  CHECK(trained["steps"] == 1);
  CHECK(trained["output_dir"] == given.tuned);
  const Finished evaluated = run_cinta({"eval", "--data", given.texts, "--model", given.tuned, "--json"});
  REQUIRE(evaluated.code == 0);
  const json report = json::parse(evaluated.out);
  check_confusion(report, 50);
  // 17 of the 50 are with a b, whatever they were taken for.
  CHECK(report["confusion_matrix"][0][0].get<int>() + report["confusion_matrix"][0][1].get<int>() == 17);

  const std::string text = run_cinta({"eval", "--data", given.texts, "--model", given.tuned}).out;
  CHECK_THAT(text, Catch::StartsWith("eval_loss ") && Contains("guessed as 0, 1, ..\n") && Contains("\n 0 with ") &&
                       Contains("\n 1 without ") && Contains("eval_accuracy 0.") && Contains("eval_macro_f1 0."));
  const Given again;
  CHECK_THAT(again.train({"--max_steps", "1"}).out,
             Contains("\n 1 without ") && Contains("accuracy ") && Contains("macro F1 "));
}

TEST_CASE("predict on the pairs that eval judges finds the same classes, from a file and one by one", "[command]") {
  const Given given;
  std::string csv = "id,sentence1,sentence2,label\n";
  for (int i = 0; i < 50; ++i) {
    const std::string letter(1, char('c' + i % 7));
    csv += std::to_string(i) + "," + letter + (i % 2 ? " b," : " a,") + (i % 3 == 0 ? "b,with\n" : "a,without\n");
  }
  write_bytes(given.texts, csv);
  given.train({"--max_steps", "30"});
  const json judged = json::parse(run_cinta({"eval", "--data", given.texts, "--model", given.tuned, "--json"}).out);
  CHECK(judged["eval_accuracy"] > 0.9);  // which no one reaches who reads the first texts alone

  const Arguments predict{"predict", "--model", given.tuned, "--json"};
  const Finished all = run_cinta(predict + Arguments{"--data", given.texts});
  INFO(all.error);
  REQUIRE(all.code == 0);
  CHECK_THAT(all.error, Contains("texts.csv: its labels are passed over"));
  const data::LabelledText pairs = data::read_labelled_text(given.texts);
  std::istringstream lines(all.out);
  std::vector<std::string> rows;
  double right = 0, loss = 0;
  for (std::string line; std::getline(lines, line); rows.push_back(line)) {
    const json row = json::parse(line);
    const std::string& label = pairs.labels.at(rows.size());
    right += row["label"] == label;
    loss -= std::log(row["probabilities"][label == "with" ? 0 : 1].get<double>());
  }
  CHECK(rows.size() == pairs.count());
  CHECK(judged["eval_accuracy"] == right / 50);
  CHECK(judged["eval_loss"].get<double>() == Approx(loss / 50).epsilon(1e-5));

  const Finished two = run_cinta(predict + Arguments{"--text", pairs.first[3], "--text_pair", pairs.second[3], "--text",
                                                     pairs.first[4], "--text_pair", pairs.second[4]});
  std::istringstream both(two.out);
  for (const int row : {3, 4}) {
    std::string line;
    std::getline(both, line);
    const json alone = json::parse(line), among = json::parse(rows[row]);
    CHECK(alone["label"] == among["label"]);
    // Not to the last bit: sums may be taken in another order in a batch of another size.
    CHECK(alone["probabilities"][0].get<double>() == Approx(among["probabilities"][0].get<double>()).epsilon(1e-6));
  }
  check_refused(predict + Arguments{"--text", "a", "--text_pair", "a", "--text_pair", "b"},
                {"a --text_pair for each --text, given 2 and 1"});
  write_bytes(given.texts, "text,text_pair\na,b\nc\n");
  check_refused(predict + Arguments{"--data", given.texts}, {"texts.csv: line 3: found 1 columns, expected 2"});
}

TEST_CASE("a classifier learnt anew has a row for each token of its vocabulary and no more", "[command]") {
  const Given given;
  const Finished finished = run_cinta({"train", "classify", "--data", given.texts, "--output_dir", given.tuned,
                                       "--max_steps", "1", "--threads", "1", "--quiet"});
  INFO(finished.error);
  REQUIRE(finished.code == 0);
  CHECK(models::read_config(given.tuned).vocab_size == data::load_wordpiece(given.tuned).vocabulary().size());
  CHECK(run_cinta({"predict", "--model", given.tuned, "--text", "a"}).error.empty());
}

TEST_CASE("a model keeps its own dropout unless another is given", "[command]") {
  const Given given;
  const auto dropout = [&](const Arguments& more) {
    std::filesystem::remove_all(given.tuned);
    given.train(Arguments{"--max_steps", "1"} + more);
    const models::BertConfig tuned = models::read_config(given.tuned);
    const std::string metrics = read_bytes(given.tuned + "/metrics.jsonl");
    const json header = json::parse(metrics.substr(0, metrics.find('\n')));
    CHECK(header["dropout"] == tuned.hidden_dropout_prob);
    return std::vector<double>{tuned.hidden_dropout_prob, tuned.attention_probs_dropout_prob, tuned.classifier_dropout};
  };
  CHECK(dropout({}) == std::vector<double>{0.1, 0.1, -1});
  models::BertConfig config = given.model.config();
  config.hidden_dropout_prob = 0.2;
  config.attention_probs_dropout_prob = 0;
  config.classifier_dropout = 0.4;
  write_bytes(given.directory + "/config.json", config.to_json(given.model.architecture()));
  CHECK(dropout({}) == std::vector<double>{0.2, 0, 0.4});
  CHECK(dropout({"--dropout", "0.3"}) == std::vector<double>{0.3, 0.3, -1});
  const Finished shown = run_cinta({"config", "train", "classify", "--data", given.texts, "--model", given.directory});
  CHECK_THAT(shown.out, Contains("dropout") && Contains("0.2"));
}

TEST_CASE("what drops before a classifier's last layer is its own", "[command]") {
  const Given given;
  const auto losses = [&](double hidden, double before_last) {
    models::BertConfig config = given.model.config();
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = hidden;
    config.classifier_dropout = before_last;
    models::BertForSequenceClassification model(config, 3);
    const models::TokenBatch tokens{.ids = full({2, 3}, 5, Dtype::i64)};
    return to_vector<float>(model(tokens));
  };
  CHECK(losses(0, 0.5) != losses(0, -1));
  CHECK(losses(0, 0) == losses(0, -1));
  CHECK(losses(0.3, 0.3) == losses(0.3, -1));
  CHECK(losses(0.3, 0) != losses(0.3, -1));
}

TEST_CASE("pairs of which no token fits are refused", "[command]") {
  const Given given;
  std::string csv = "text,text_pair,label\n";
  for (int i = 0; i < 20; ++i) csv += i % 2 ? "a,b,with\n" : "c,d,without\n";
  write_bytes(given.texts, csv);
  const Arguments train{"train", "classify", "--data",    given.texts, "--output_dir",     given.tuned, "--max_steps",
                        "1",     "--quiet",  "--threads", "1",         "--sequence_length"};
  for (const std::string length : {"3", "4"})
    check_refused(train + Arguments{length}, {"a length of at least 5, given " + length});
  CHECK(!std::filesystem::exists(given.tuned));
  const Finished finished = run_cinta(train + Arguments{"5"});
  INFO(finished.error);
  CHECK(finished.code == 0);
}

TEST_CASE("--train head changes the pooler and the classifier, and no bit of anything else", "[command]") {
  const Given given;
  given.train({"--train", "head", "--max_steps", "1"});
  const std::string first = given.scratch / "first";
  std::filesystem::rename(given.tuned, first);
  given.train({"--train", "head", "--max_steps", "4"});
  const std::vector<std::string> head{"bert.pooler.dense.bias", "bert.pooler.dense.weight", "classifier.bias",
                                      "classifier.weight"};
  CHECK(changed(given.directory, given.tuned) == head);
  CHECK(changed(first, given.tuned) == head);  // the classifier too is not merely new, it is trained
  std::filesystem::rename(given.tuned, given.scratch / "head");
  given.train({"--max_steps", "4"});
  CHECK(changed(given.directory, given.tuned).size() == read_tensors(given.tuned + "/model.safetensors").size());
}
