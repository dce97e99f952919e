// Texts with classes: every format and way of naming columns gives the same samples; what cannot be read is refused by
// file and line; a classifier learns them, resumes bit for bit and is read back.
#include "cinta/data/labelled_text.h"

#include <catch2/catch.hpp>

#include "cinta/train/loop.h"
#include "cinta/train/text_classify_task.h"
#include "command_helpers.h"
#include "data_helpers.h"
#include "train_helpers.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;

namespace {

using Words = std::vector<std::string>;

LabelledText read(const Scratch& scratch, const std::string& name, const std::string& text) {
  write_bytes(scratch / name, text);
  return read_labelled_text(scratch / name);
}

/// Texts of letters; which class depends on whether an x is among them.
LabelledText with_and_without_x(int count, int offset) {
  LabelledText out;
  for (int i = offset; i < offset + count; ++i) {
    std::string text;
    for (int j = 0; j < 6; ++j) text += std::string(1, static_cast<char>('a' + (i * 7 + j * (3 + i % 4)) % 20)) + " ";
    if (i % 3 == 0) text[static_cast<size_t>(2 * (i % 6))] = 'x';
    out.first.push_back(text);
    out.labels.push_back(i % 3 == 0 ? "with" : "without");
  }
  return out;
}

models::BertConfig classifier_config(double dropout) {
  models::BertConfig config = small_config(dropout);
  config.label_names = {"with", "without"};
  config.initializer_range = 0.1;
  return config;
}

}  // namespace

TEST_CASE("every format gives the same samples", "[labelled_text]") {
  const Scratch scratch;
  const Words texts{"plain", "a, \"quoted\" one", "two\nlines", "grün"}, labels{"x", "y", "x", "z"};
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"a.csv", "text,label\nplain,x\n\"a, \"\"quoted\"\" one\",y\n\"two\nlines\",x\ngrün,z\n"},
           {"b.csv",
            "\xef\xbb\xbfid,label,text\r\n1,x,plain\r\n2,y,\"a, \"\"quoted\"\" "
            "one\"\r\n3,x,\"two\nlines\"\r\n4,z,grün"},
           {"c.csv", "plain,x\n\"a, \"\"quoted\"\" one\",y\n\"two\nlines\",\"x\"\ngrün,z\n\n"},
           {"d.jsonl",
            "{\"text\": \"plain\", \"label\": \"x\"}\n{\"label\": \"y\", \"text\": \"a, \\\"quoted\\\" one\", "
            "\"more\": [1]}\n"
            "\n{\"text\": \"two\\nlines\", \"label\": \"x\"}\r\n{\"text\": \"gr\\u00fcn\", \"label\": \"z\"}"}}) {
    INFO(name);
    const LabelledText found = read(scratch, name, text);
    CHECK(found.first == texts);
    CHECK(found.labels == labels);
    CHECK(found.second.empty());
  }
  CHECK(read(scratch, "f.csv", "text,label\n\"two\nlines\",x\n\na,y\n").lines == std::vector<int64_t>{2, 5});
  const LabelledText tsv = read(scratch, "e.tsv", "sentence1\tsentence2\tlabel\na \"b\tc\t1\n\td\t0\n");
  CHECK(tsv.first == Words{"a \"b", ""});
  CHECK(tsv.second == Words{"c", "d"});
  CHECK(tsv.labels == Words{"1", "0"});
  CHECK(read(scratch, "g.jsonl", "{\"sentence\": \"a\", \"label\": 3}\n").labels == Words{"3"});
}

TEST_CASE("texts without labels are read from the same formats, and from plain lines", "[labelled_text]") {
  const Scratch scratch;
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{{"a.csv", "text\n\"a, b\"\nc\tc\n"},
                                                        {"a.jsonl", "{\"text\": \"a, b\"}\n{\"text\": \"c\\tc\"}\n"},
                                                        {"a.txt",
                                                         "\xef\xbb\xbf"
                                                         "a, b\r\nc\tc"}}) {
    INFO(name);
    write_bytes(scratch / name, text);
    const LabelledText found = read_texts(scratch / name);
    CHECK(found.first == Words{"a, b", "c\tc"});
    CHECK(found.second.empty());
    CHECK(found.labels.empty());
  }
  write_bytes(scratch / "lines", "a\n\nb\xff\n");
  CHECK_THAT(error_of<FileError>([&] { read_texts(scratch / "lines"); }), Catch::Matchers::Contains("lines: line 3"));
  CHECK(read_texts(scratch / "lines", BadUtf8::replace).first == Words{"a", "", "b\ufffd"});
  for (const char* name : {"a.csv", "a.tsv", "a.txt"}) {
    write_bytes(scratch / name, "\na\n\nb\n");
    CHECK(read_texts(scratch / name).first == Words{"", "a", "", "b"});
  }
  write_bytes(scratch / "named.csv", "\ntext\n\"\"\na\n");
  CHECK(read_texts(scratch / "named.csv").first == Words{"", "a"});
  write_bytes(scratch / "a.jsonl", "{\"text\": \"a\", \"label\": 1, \"score\": 1.5, \"text_pair\": null}\n");
  CHECK(read_texts(scratch / "a.jsonl").labels == Words{"1"});
  write_bytes(scratch / "pairs.tsv", "text\ttext_pair\na, b\tc\n");
  CHECK(read_texts(scratch / "pairs.tsv").second == Words{"c"});
}

TEST_CASE("labels are ordered by name, numbers by value", "[labelled_text]") {
  CHECK(label_names({"b", "a", "b", "10"}) == Words{"10", "a", "b"});
  CHECK(label_names({"10", "9", "-1", "9"}) == Words{"-1", "9", "10"});
}

TEST_CASE("labelled text that cannot be read is refused by file and line", "[labelled_text]") {
  const Scratch scratch;
  for (const auto& [name, text, part] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"a.txt", "a,b\n", "ends in .csv, .tsv or .jsonl"},
           {"a.csv", "", "has no sample"},
           {"a.tsv", "only text\nmore text\n", "has no column of labels"},
           {"a.csv", "text,label\n", "has no sample"},
           {"a.csv", "text,label\na,b\nc\n", "line 3: found 1 columns, expected 2"},
           {"a.csv", "text,label\n\"a\nb\",x\nc,y,z\n", "line 4: found 3 columns"},
           {"a.csv", "text,label\na,b\n\"c,d\n", "line 3: a quote is never closed"},
           {"a.csv", "text,label\n\"a\"b,c\n", "line 2: column 1: text after the closing quote"},
           {"a.csv", "text,label\na,\n", "line 2: column 2: the label is empty"},
           {"a.csv", "word,label\na,b\n", "line 1: no column is called text"},
           {"a.csv", "a,b,c,d\n", "found 4 columns without names"},
           {"a.csv", "text,label\na\xff,b\n", "line 2"},
           {"a.jsonl", "{\"text\": \"a\", \"label\": \"b\"}\nnothing\n", "line 2: is not JSON: "},
           {"a.jsonl", "[1]\n", "line 1: is not a JSON object"},
           {"a.jsonl", "{\"text\": \"a\", \"text\": \"b\"}\n", "line 1: found the key 'text' twice"},
           {"a.jsonl", "{\"words\": \"a\"}\n", "line 1: no key is called text"},
           {"a.jsonl", "{\"text\": null, \"label\": \"b\"}\n",
            "line 1: 'text' is null, expected a text or a whole number"},
           {"a.jsonl", "{\"text\": \"a\", \"label\": \"b\"}\n{\"text\": \"a\"}\n",
            "line 2: has text: 'text'; the lines before have text: 'text', label: 'label'"},
           {"a.jsonl", "{\"text\": true, \"label\": true}\n",
            "line 1: 'text' is true, expected a text or a whole number"},
           {"a.csv", "words,mood\na,b\nc,d\nc,b\n", "line 1: 'words', 'mood' is no header that is known"},
           {"a.csv", "words,more,mood\na,b,c\n", "line 1: 'words', 'more', 'mood' is no header that is known"},
           {"a.csv", "text,\"mood\"\na,b\n", "category, class, target; found text: 'text'; not read: 'mood'"},
           {"a.jsonl", "{\"text\": \"a\", \"label\": 1.5}\n", "line 1: 'label' is 1.5"},
           {"a.jsonl", "{\"text\": \"a\", \"sentence2\": [\"b\"], \"label\": 1}\n", "line 1: 'sentence2' is [\"b\"]"},
           {"a.csv.gz", "text,label\na,b,c\n", "line 2: found 3 columns"}}) {
    INFO(name << ": " << text);
    const std::string error = error_of<FileError>([&, &n = name, &t = text] { read(scratch, n, t); });
    CHECK(error.find(part) != std::string::npos);
    CHECK(error.find(scratch / name) != std::string::npos);
  }
}

TEST_CASE("bytes of labelled text that are not UTF-8 are replaced where that is asked for", "[labelled_text]") {
  const Scratch scratch;
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"a.csv", "text,label\ncaf\xe9,b\n"}, {"a.jsonl", "{\"text\": \"caf\xe9\", \"label\": \"b\"}\n"}}) {
    INFO(name);
    CHECK(error_of<FileError>([&, &n = name, &t = text] { read(scratch, n, t); }) != "no error");
    CHECK(read_labelled_text(scratch / name, BadUtf8::replace).first == Words{"caf\ufffd"});
  }
}

TEST_CASE("samples are framed, pairs typed, unknown labels refused", "[labelled_text]") {
  const LabelledText text{{"a b", "c"}, {"d", "e f g h"}, {"no", "yes"}};
  const ClassifiedSequences found = encode(text, WordPiece(letters()), {"no", "yes"}, 7);
  CHECK(std::ranges::equal(found.sequences.ids, std::vector{2, 5, 6, 3, 8, 3, 0, 2, 7, 3, 9, 10, 11, 3}));
  CHECK(found.types == std::vector<int64_t>{0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(std::ranges::equal(found.sequences.lengths, std::vector{6, 7}));
  CHECK(found.labels == std::vector<int64_t>{0, 1});
  CHECK(error_of<ValueError>([&] {
          encode(text, WordPiece(letters()), {"no"}, 7);
        }).find("sample 2 has the label 'yes', which is none of the model's 1") != std::string::npos);
  LabelledText of_file = text;
  of_file.lines = {4, 9};
  const std::vector<int64_t> last{1};
  CHECK(error_of<ValueError>([&] {
          encode(select(of_file, last), WordPiece(letters()), {"no"}, 7, "a.csv");
        }).find("a.csv: line 9 has the label 'yes'") != std::string::npos);
  const ClassifiedBatches batches(found, 3, 1);
  CHECK(batches.batch(0).types.size() == 21);
  CHECK(batches.slice(1, 2).labels == std::vector<int64_t>{1});
}

TEST_CASE("accuracy and macro F1 of a confusion", "[labelled_text]") {
  const train::Confusion some{3, {5, 1, 0, 2, 2, 0, 0, 0, 0}};  // the third class is neither met nor guessed
  CHECK(some.accuracy() == Approx(0.7));
  CHECK(some.macro_f1() == Approx((2.0 * 5 / (6 + 7) + 2.0 * 2 / (4 + 3)) / 2));
}

TEST_CASE("a text classifier learns, and stopped and resumed leaves the same bytes", "[labelled_text]") {
  const ThreadScope one(1);  // the work is small; a team would wait for a busy core at every row
  const Scratch scratch;
  const Words names{"with", "without"};
  const train::TextClassifyData data{WordPiece(letters()),
                                     encode(with_and_without_x(240, 0), WordPiece(letters()), names, 8),
                                     encode(with_and_without_x(60, 240), WordPiece(letters()), names, 8)};
  auto options = [&](const char* directory, int64_t steps) {
    train::RunOptions out = small_run(scratch / directory);
    out.max_steps = steps;
    out.schedule.total = 150;
    out.accumulation_steps = 1;
    out.eval_steps = 50;
    return out;
  };
  const train::MetricFields header{{"task", std::string("classify")}};
  train::TextClassifyTask whole(data, classifier_config(0.1), 16, 3);
  const train::RunResult result = train::run(whole, options("whole", 150), header);
  CHECK(train::number(result.evaluation, "eval_accuracy") > 0.9);
  CHECK(whole.confusion().accuracy() == train::number(result.evaluation, "eval_accuracy"));
  train::TextClassifyTask part(data, classifier_config(0.1), 16, 3), rest(data, classifier_config(0.1), 16, 3);
  train::run(part, options("parts", 70), header);
  train::RunOptions resumed = options("parts", 150);
  resumed.resume = true;
  train::run(rest, resumed, header);
  auto expected = left_behind(scratch / "whole", 150), found = left_behind(scratch / "parts", 150);
  expected.erase("metrics.jsonl"), found.erase("metrics.jsonl");  // the run to 70 ended with an evaluation of its own
  CHECK(differing(expected, found) == Words{});
}

TEST_CASE("the command trains a classifier of texts, evaluates it and predicts", "[labelled_text]") {
  const Scratch scratch;
  const LabelledText text = with_and_without_x(300, 0);
  std::string csv = "text,label\n", lines;
  for (size_t i = 0; i < text.count(); ++i) csv += text.first[i] + "," + text.labels[i] + "\n";
  for (size_t i = 0; i < 6; ++i) lines += text.first[i] + "\n";
  write_bytes(scratch / "texts.csv", csv);
  write_bytes(scratch / "lines.txt", lines);
  const std::string model = scratch / "model";
  const Finished trained = run_cinta({"train", "classify", "--data", scratch / "texts.csv", "--output_dir", model,
                                      "--vocab_size", "60", "--sequence_length", "10", "--max_steps", "120",
                                      "--learning_rate", "2e-3", "--threads", "1", "--quiet", "--dropout", "0"});
  INFO(trained.error);
  REQUIRE(trained.code == 0);
  CHECK(trained.out.find("macro F1") != std::string::npos);
  const Finished evaluated = run_cinta({"eval", "--model", model, "--data", scratch / "texts.csv"});
  CHECK(evaluated.code == 0);
  CHECK(std::stod(evaluated.out.substr(evaluated.out.find("eval_accuracy ") + 14)) > 0.9);
  const Finished predicted = run_cinta({"predict", "--model", model, "--data", scratch / "lines.txt"});
  CHECK(predicted.out.find("%  with\n") != std::string::npos);
  CHECK(predicted.out.find("%  without\n") != std::string::npos);
  const Finished refused = run_cinta({"train", "classify", "--data", scratch / "lines.txt"});
  CHECK(refused.code == 2);
  CHECK(refused.error.find("ends in .csv, .tsv or .jsonl") != std::string::npos);
}
