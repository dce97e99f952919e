// `cinta predict` and `cinta tokenize` from outside: the numbers are the model's own, bad input is refused.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "command_helpers.h"
#include "saved_model.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

void save(const std::string& path, std::vector<models::NamedTensor> tensors) {
  std::vector<Tensor> hold;
  data::save_safetensors(path, models::file_tensors(tensors, hold));
}

const std::vector<int64_t> ids{2, 7, 9, 3, 0, 0, 2, 8, 30, 31, 32, 3, 2, 3, 0, 0, 0, 0},
    mask{1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0};
const std::vector<int32_t> lengths{4, 6, 2};

/// The numbers of every token that is no padding; those of padding mean nothing.
std::vector<float> at_tokens(const Tensor& logits) {
  const std::vector<float> all = to_vector<float>(logits);
  const size_t classes = all.size() / mask.size();
  std::vector<float> out;
  for (size_t i = 0; i < all.size(); ++i)
    if (mask[i / classes]) out.push_back(all[i]);
  return out;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("predict writes the logits that the model computes", "[command]") {
  const ThreadScope one(1);
  Saved<models::BertForMaskedLM> saved(3);
  const autograd::NoGrad off;
  const Tensor input_ids = from_values(ids, {3, 6});
  save(saved.scratch / "in", {{"input_ids", input_ids}, {"attention_mask", from_values(mask, {3, 6})}});
  const std::string out = saved.scratch / "out";
  const Finished finished = run_cinta({"predict", "--model", saved.directory, "--input_ids", saved.scratch / "in",
                                       "--output_logits", out, "--batch_size", "2"});
  INFO(finished.error);
  REQUIRE(finished.code == 0);
  const Tensor logits = read_tensors(out).at("logits");
  CHECK(logits.shape() == Shape{3, 6, 61});
  // In the batches that were asked for, each as wide as its longest sample: in a batch of another size sums may be
  // taken in another order.
  const auto batch = [&](int64_t from, int64_t until, int64_t width) {
    const Tensor some = from_values(std::vector<int32_t>(&lengths[from], &lengths[until]), {until - from});
    return saved.model({contiguous(slice(slice(input_ids, 0, from, until), 1, 0, width)), {}, some});
  };
  CHECK(at_tokens(logits) == at_tokens(concat({batch(0, 2, 6), pad(batch(2, 3, 2), 0, 0, 4)}, 0)));

  Saved<models::BertForPreTraining> both(4);
  REQUIRE(run_cinta({"predict", "--model", both.directory, "--input_ids", saved.scratch / "in", "--output_logits", out})
              .code == 0);
  auto tensors = read_tensors(out);
  const auto outputs = both.model({input_ids, {}, from_values(lengths, {3})});
  CHECK(at_tokens(tensors.at("prediction_logits")) == at_tokens(outputs.masked));
  CHECK(to_vector<float>(tensors.at("seq_relationship_logits")) == to_vector<float>(outputs.next_sentence));
}

TEST_CASE("predict writes what transformers' BertModel computes, with and without a pooler", "[command]") {
  const ThreadScope one(1);
  const Scratch scratch;
  const std::string golden = CINTA_SOURCE_DIR "/tests/golden/bert_", directory = scratch / "model", in = scratch / "in",
                    out = scratch / "out";
  auto first = [&, tensors = read_tensors(golden + "bare.safetensors")](const char* name) {
    return contiguous(squeeze(slice(tensors.at(name), 0, 0, 1), 0));
  };
  const std::vector<int32_t> lengths = to_vector<int32_t>(first("lengths"));
  const Tensor input_ids = first("ids");
  std::vector<int64_t> attention;
  for (const int32_t length : lengths)
    for (int64_t at = 0; at < input_ids.size(1); ++at) attention.push_back(at < length);
  save(in, {{"input_ids", input_ids},
            {"token_type_ids", first("types")},
            {"attention_mask", from_values(attention, input_ids.shape())}});
  std::filesystem::create_directory(directory);
  write_bytes(directory + "/config.json", small_config().to_json("BertModel"));
  const auto expected = read_tensors(golden + "bare.safetensors");
  for (const bool with_pooler : {true, false}) {
    INFO(with_pooler);
    std::vector<models::NamedTensor> body;  // as transformers saves it: without "bert."
    for (const auto& [name, tensor] : read_tensors(golden + "weights.safetensors"))
      if (name.starts_with("bert.") && (with_pooler || !name.starts_with("bert.pooler")))
        body.push_back({name.substr(5), tensor});
    save(directory + "/model.safetensors", body);
    const Finished finished =
        run_cinta({"predict", "--model", directory, "--input_ids", in, "--output_logits", out, "--batch_size", "2"});
    INFO(finished.error);
    REQUIRE(finished.code == 0);
    const auto found = read_tensors(out);
    CHECK(found.size() == (with_pooler ? 2 : 1));
    for (const auto& [name, tensor] : found) {
      INFO(name);
      const std::vector<double> ours = to_vector<double>(tensor), theirs = to_vector<double>(expected.at(name));
      REQUIRE(tensor.shape() == expected.at(name).shape());
      const size_t row = ours.size() / attention.size();  // numbers of a token; what stands in padding is nobody's
      double worst = 0;
      for (size_t i = 0; i < ours.size(); ++i)
        if (name == "pooler_output" || attention[i / row]) worst = std::max(worst, std::abs(ours[i] - theirs[i]));
      CHECK(worst < 1e-5);
    }
  }
  CHECK(run_cinta({"predict", "--model", directory, "--input_ids", in}).code == 2);
}

TEST_CASE("predict names the classes of texts", "[command]") {
  const ThreadScope one(1);
  Saved<models::BertForSequenceClassification> saved(5);
  const std::string texts = saved.scratch / "texts";
  write_bytes(texts, "word7 word9\r\nword8 word30 word31 word32\n\n");
  const Finished finished = run_cinta({"predict", "--model", saved.directory, "--data", texts, "--json"});
  INFO(finished.error);
  REQUIRE(finished.code == 0);
  const autograd::NoGrad off;
  const std::vector<float> expected =
      to_vector<float>(saved.model({from_values(ids, {3, 6}), {}, from_values(lengths, {3})}));
  std::istringstream lines(finished.out);
  size_t at = 0;
  for (std::string line; std::getline(lines, line); at += 3) {
    const auto row = nlohmann::json::parse(line);
    float sum = 0;
    for (size_t i = 0; i < 3; ++i) sum += std::exp(expected.at(at + i));
    for (size_t i = 0; i < 3; ++i)
      CHECK(row["probabilities"][i].get<float>() == Approx(std::exp(expected[at + i]) / sum).epsilon(1e-5));
    CHECK(expected[at + row["class"].get<size_t>()] == *std::max_element(&expected[at], &expected[at] + 3));
  }
  CHECK(at == 9);
  CHECK(contains(run_cinta({"predict", "--model", saved.directory, "--text", "word7 word9"}).out, " %  LABEL_"));
}

TEST_CASE("what tells a number, or each label by itself, is no choice of a label", "[command]") {
  const Saved<models::BertForSequenceClassification> saved(5);
  const std::string config = read_bytes(saved.directory + "/config.json"), csv = saved.scratch / "texts.csv";
  write_bytes(csv, "text,label\nword7,LABEL_0\n");
  for (const char* problem : {"multi_label_classification", "regression", "single_label_classification"}) {
    write_bytes(saved.directory + "/config.json",
                "{\"problem_type\": \"" + std::string(problem) + "\"," + config.substr(1));
    const Arguments predict{"predict", "--model", saved.directory, "--text", "word7"};
    if (problem == std::string("single_label_classification")) {
      CHECK(run_cinta(predict).code == 0);
      continue;
    }
    check_refused(predict, {"config.json: problem_type is " + std::string(problem), "one of several labels"});
    check_refused({"eval", "--model", saved.directory, "--data", csv}, {"problem_type is " + std::string(problem)});
    const Finished finished = run_cinta(predict + Arguments{"--output_logits", saved.scratch / "out"});
    CHECK(finished.code == 0);
    CHECK(finished.out.empty());
  }
  models::BertConfig number = saved.model.config();
  number.num_labels = 1;
  const models::BertForSequenceClassification regression(number, 5);
  models::save_weights(regression, saved.directory + "/model.safetensors");
  write_bytes(saved.directory + "/config.json", number.to_json(regression.architecture()));
  check_refused({"predict", "--model", saved.directory, "--text", "word7"}, {"num_labels is 1, expected a choice"});
}

TEST_CASE("predict takes no text for a class", "[command]") {
  const Saved<models::BertForSequenceClassification> saved(5);
  const std::string csv = saved.scratch / "texts.csv", tsv = saved.scratch / "pairs.tsv";
  auto predict = [&](const std::string& path, const std::string& text) {
    write_bytes(path, text);
    return Arguments{"predict", "--model", saved.directory, "--data", path};
  };
  check_refused(predict(csv, "word7, word8\nword9, word30\n"),
                {"texts.csv: line 1: column 2 holds no class of the model (' word8'); name the columns"});
  check_refused(predict(csv, "word7,LABEL_2\nword9,LABEL_3\n"), {"line 2: column 2", "('LABEL_3')"});
  check_refused(predict(tsv, "word7\tword8\n"), {"pairs.tsv: line 1: column 2 holds no class", "'word8'"});
  for (const char* text : {"word7,LABEL_2\n", "text,label\nword7,other\n"}) {
    const Finished finished = run_cinta(predict(csv, text));
    CHECK(finished.code == 0);
    CHECK(contains(finished.error, "its labels are passed over"));
  }
  CHECK(run_cinta(predict(tsv, "text\ttext_pair\nword7\tword8\n")).error.empty());
  const Finished reviews = run_cinta(predict(csv, "Review,Title\nword7,word8\nword9,word7\n"));
  CHECK(std::ranges::count(reviews.out, '\n') == 2);
  CHECK(contains(reviews.error, "texts.csv: text: 'Review'; not read: 'Title'\n"));
  CHECK(contains(run_cinta(predict(csv, "Words\nword7\n")).error, "texts.csv: no header: text\n"));
}

TEST_CASE("a tensor of the file that the model does not have is named, wherever weights are loaded", "[command]") {
  const Saved<models::BertForMaskedLM> masked(3);
  const Saved<models::BertForSequenceClassification> classes(5);
  const std::string file = masked.scratch / "data.csv";
  std::string csv = "text,label\n";
  for (int i = 0; i < 6; ++i) csv += "word7 word9,LABEL_" + std::to_string(i % 3) + "\n";
  write_bytes(file, csv);
  const std::vector<Arguments> commands{
      {"predict", "--model", classes.directory, "--text", "word7"},
      {"fill", "word7 [MASK]", "--model", masked.directory, "--json"},
      {"eval", "--model", classes.directory, "--data", file, "--json"},
      {"eval", "--model", masked.directory, "--data", file, "--json"},
      {"train", "classify", "--data", file, "--model", masked.directory, "--max_steps", "1", "--json"}};
  for (const bool spare : {false, true}) {
    if (spare)
      for (const std::string& directory : {masked.directory, classes.directory}) {
        std::vector<models::NamedTensor> tensors{{"spare.weight", from_values(std::vector<float>{1}, {1})}};
        for (const auto& [name, tensor] : read_tensors(directory + "/model.safetensors"))
          tensors.push_back({name, tensor});
        save(directory + "/model.safetensors", tensors);
      }
    for (const Arguments& command : commands) {
      const Finished loud = run_cinta(command), quiet = run_cinta(command + Arguments{"--quiet"});
      INFO(command[0] << " " << loud.error);
      REQUIRE(loud.code == 0);
      CHECK(contains(loud.error, "tensors loaded\n") == (spare || command[0] == "train"));
      CHECK(contains(loud.error, "\nunused: spare.weight\n") == spare);
      CHECK(quiet.error.empty());
      if (command.back() != "--json") continue;
      const auto report = nlohmann::json::parse(loud.out)["load"];
      CHECK(report["loaded"].get<int>() > 30);
      CHECK(contains(report["unused"].dump(), "spare.weight") == spare);
      CHECK(report["missing"].size() == (command[0] == "train" ? 4 : 0));
    }
  }
}

TEST_CASE("predict refuses what is no input of the model", "[command]") {
  Saved<models::BertForMaskedLM> saved(3);
  auto refused = [&](const Arguments& more, const std::string& part) {
    const Finished finished = run_cinta(Arguments{"predict", "--model", saved.directory} + more);
    INFO(finished.error);
    CHECK(finished.code == 2);
    CHECK(contains(finished.error, part));
  };
  const std::string in = saved.scratch / "in";
  refused({}, "one of --text, --data and --input_ids");
  refused({"--text", "a", "--input_ids", in}, "given 2");
  refused({"--text", "a"}, "cinta fill");
  refused({"--input_ids", in}, "cannot be opened");
  save(in, {{"ids", from_values(ids, {3, 6})}});
  refused({"--input_ids", in}, "no tensor called input_ids");
  for (const char* unknown : {"position_ids", "attention_masks"}) {
    save(in, {{"input_ids", from_values(ids, {3, 6})}, {unknown, from_values(mask, {3, 6})}});
    refused({"--input_ids", in}, join("in: holds '", unknown, "', which is none of input_ids, attention_mask and"));
  }
  save(in, {{"input_ids", from_values(std::vector<float>{1, 2}, {1, 2})}});
  refused({"--input_ids", in}, "whole numbers");
  save(in, {{"input_ids", from_values(std::vector<int64_t>(13, 1), {1, 13})}});
  refused({"--input_ids", in, "--output_logits", saved.scratch / "out"},
          "in: input_ids has rows of 13 tokens, the model positions for 12");
  save(in, {{"input_ids", from_values(std::vector<int64_t>{2, 61}, {1, 2})}});
  refused({"--input_ids", in, "--output_logits", saved.scratch / "out"},
          "in: input_ids: row 0, position 1 holds 61, the model's vocab_size is 61");
  save(in, {{"input_ids", from_values(std::vector<int64_t>{2, 3, -1, 3}, {2, 2})}});
  refused({"--input_ids", in, "--output_logits", saved.scratch / "out"}, "row 1, position 0 holds -1");
  save(in, {{"input_ids", from_values(ids, {3, 6})}, {"token_type_ids", from_values(ids, {3, 6})}});
  refused({"--input_ids", in}, "in: token_type_ids: row 0, position 0 holds 2, the model's type_vocab_size is 2");
  save(in, {{"input_ids", from_values(ids, {3, 6})}, {"attention_mask", from_values(ids, {3, 6})}});
  refused({"--input_ids", in}, "row 0 is not ones and then zeros");
  save(in, {{"input_ids", from_values(ids, {3, 6})}, {"attention_mask", from_values(ids, {6, 3})}});
  refused({"--input_ids", in}, "have the shape of input_ids");
  CHECK(!std::filesystem::exists(saved.scratch / "out"));
  std::filesystem::remove(saved.directory + "/vocab.txt");  // the class is told before anything else is missed
  write_bytes(saved.directory + "/config.json", saved.model.config().to_json("BertForQuestionAnswering"));
  refused({"--text", "a"}, "model/config.json: describes neither an MLP nor a BERT with a known head: found 'BertForQ");
}

TEST_CASE("a vocabulary larger than the model's is refused, a smaller one noted", "[command]") {
  const Saved<models::BertForSequenceClassification> classes(5);
  const Saved<models::BertForMaskedLM> masked(3);
  const std::string file = classes.scratch / "texts.csv";
  write_bytes(file, "text,label\nword7,LABEL_0\nword8,LABEL_1\nword7,LABEL_0\nword8,LABEL_1\n");
  const std::vector<Arguments> commands{
      {"predict", "--model", classes.directory, "--data", file},
      {"eval", "--model", classes.directory, "--data", file},
      {"fill", "word7 [MASK]", "--model", masked.directory},
      {"train", "classify", "--model", masked.directory, "--data", file, "--test_fraction", "0.5", "--max_steps", "1"}};
  const int64_t rows = masked.model.config().vocab_size;
  auto with_vocabulary = [&](int64_t size) {
    for (const std::string& directory : {classes.directory, masked.directory})
      data::save_wordpiece(numbered_words(size), directory);
  };
  for (const Arguments& command : commands) {
    INFO(command[0]);
    with_vocabulary(rows + 2);
    check_refused(command, {"model/vocab.txt: has 63 tokens, config.json says vocab_size 61"});
    with_vocabulary(rows - 2);
    CHECK(contains(run_cinta(command).error, "model/vocab.txt: has 59 tokens, the model 61; the last 2 are never"));
    const Finished quiet = run_cinta(command + Arguments{"--quiet"});
    CHECK(quiet.code == 0);
    CHECK(quiet.error.empty());
  }
}

TEST_CASE("a directory's model is planned at a length that it takes", "[command]") {
  Saved<models::BertForMaskedLM> saved(3);
  const int64_t longest = saved.model.config().max_position_embeddings;
  CHECK(longest < 128);
  CHECK(run_cinta({"plan", saved.directory}).out ==
        run_cinta({"plan", saved.directory, "--sequence_length", std::to_string(longest)}).out);
  check_refused({"plan", saved.directory, "--sequence_length", std::to_string(longest + 1)},
                {"positions for 12 tokens, given sequences of 13"});
}

TEST_CASE("tokenize shows the pieces and their numbers", "[command]") {
  Saved<models::BertForMaskedLM> saved(3);
  const Finished finished = run_cinta({"tokenize", "word7 [MASK] what", "--model", saved.directory, "--json"});
  REQUIRE(finished.code == 0);
  CHECK(nlohmann::json::parse(finished.out) ==
        nlohmann::json{{"tokens", {"[CLS]", "word7", "[MASK]", "[UNK]", "[SEP]"}}, {"input_ids", {2, 7, 4, 1, 3}}});
  CHECK(contains(run_cinta({"tokenize", "word7", "--model", saved.directory}).out, "7  word7\n"));
  for (const char* brackets : {"[MASK]", "[word7, word8]", "[]"})  // no list of texts
    for (const Arguments& texts : {Arguments{brackets, "word7"}, Arguments{"--", brackets, "word7"}}) {
      const Finished one = run_cinta(Arguments{"tokenize", "--model", saved.directory, "--json"} + texts);
      INFO(texts[0] << " " << brackets << " " << one.error);
      CHECK(one.code == 0);
      CHECK(std::ranges::count(one.out, '\n') == 2);
      CHECK(contains(one.out, "\"[MASK]\"") == (std::string(brackets) == "[MASK]"));
    }
  CHECK(run_cinta({"tokenize", "word7", "--model", saved.scratch / "none"}).code == 2);
  for (const char* command : {"inspect", "plan"})  // which take one word, whole in any case
    CHECK(!contains(run_cinta({command, "--", "[none]"}).error, "[none] "));
}
