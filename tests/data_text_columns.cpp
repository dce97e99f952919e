// Which columns of a file of texts are read: by name in whatever spelling, by place where there are none, and what is
// told.
#include <catch2/catch.hpp>

#include "cinta/data/labelled_text.h"
#include "cinta/data/text_columns.h"
#include "command_helpers.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;
using Catch::Matchers::Contains;

namespace {

using Words = std::vector<std::string>;

struct Case {
  std::string header;
  Words first, second;
  std::string note;
};

}  // namespace

TEST_CASE("columns are known by name, in capitals or not, and what is not read is told", "[data]") {
  const Scratch scratch;
  for (const Case& one : std::vector<Case>{
           {"text,id,label", {"a"}, {}, "text: 'text', label: 'label'; not read: 'id'"},
           {"Review,\tTitle , SENTIMENT ", {"a"}, {}, "text: 'Review', label: ' SENTIMENT '; not read: ' Title '"},
           {"question,sentence,label", {"a"}, {"b"}, ""},
           {"sentence,question,label", {"b"}, {"a"}, ""},
           {"text,pair,label", {"a"}, {"b"}, ""},
           {"text,text_pair,labels", {"a"}, {"b"}, ""},
           {"premise,hypothesis,class", {"a"}, {"b"}, ""},
           {"Question1,question2,target", {"a"}, {"b"}, ""},
           {"comment,text,category", {"b"}, {}, "text: 'text', label: 'category'; not read: 'comment'"},
           {"category,content,label", {"b"}, {}, "text: 'content', label: 'label'; not read: 'category'"},
           {"\"text\", \"pair\", \"label\"", {"a"}, {"b"}, ""},
           {"x,y,c", {"x", "a"}, {"y", "b"}, "no header: text, second text, label"}}) {
    INFO(one.header);
    write_bytes(scratch / "a.csv", one.header + "\na,b,c\n");
    const LabelledText found = read_labelled_text(scratch / "a.csv");
    CHECK(found.first == one.first);
    CHECK(found.second == one.second);
    CHECK(found.labels.back() == "c");
    CHECK(found.note == one.note);
  }
  write_bytes(scratch / "a.csv", "a,c\nb,c\n");
  CHECK(read_labelled_text(scratch / "a.csv").note == "no header: text, label");
}

TEST_CASE("keys are known as columns are, and truths are labels", "[data]") {
  const Scratch scratch;
  auto read = [&](const std::string& text) {
    write_bytes(scratch / "a.jsonl", text);
    return read_labelled_text(scratch / "a.jsonl");
  };
  const LabelledText pair = read("{\"Text\": \"a\", \"pair\": \"b\", \"label\": true, \"pair_id\": null}\n");
  CHECK(pair.second == Words{"b"});
  CHECK(pair.labels == Words{"true"});
  CHECK(pair.note.empty());
  const LabelledText more =
      read("{\"review\": \"a\", \"label\": 1, \"class\": [2]}\n{\"review\": \"a\", \"label\": 1, \"x\": \"y\"}\n");
  CHECK(more.note == "text: 'review', label: 'label'; not read: 'class', 'x'");
}

TEST_CASE("blanks before a quoted field are passed over, and endings may be in capitals", "[data]") {
  const Scratch scratch;
  write_bytes(scratch / "A.CSV", "\"text\", \"label\"\n\"a, b\",   \"x\"\n c,y\n");
  const LabelledText found = read_labelled_text(scratch / "A.CSV");
  CHECK(found.first == Words{"a, b", " c"});
  CHECK(found.labels == Words{"x", "y"});
  write_bytes(scratch / "A.Tsv", "text\tlabel\na\tx\n");
  CHECK(read_labelled_text(scratch / "A.Tsv").labels == Words{"x"});
}

TEST_CASE("a first line that may be names is a sample where its class is known", "[data]") {
  const Scratch scratch;
  write_bytes(scratch / "a.csv", "words,mood\na,good\nb,bad\n");
  CHECK_THAT(
      error_of<FileError>([&] { read_labelled_text(scratch / "a.csv"); }),
      Contains("a.csv: line 1: 'words', 'mood' is no header that is known") && Contains("text: text, sentence1"));
  CHECK_THAT(error_of<FileError>([&] {
               read_labelled_text(scratch / "a.csv", BadUtf8::error, {"good", "bad"});
             }),
             Contains("a.csv: line 1: column 2 holds no class of the model ('mood'); name the columns"));
  CHECK(read_labelled_text(scratch / "a.csv", BadUtf8::error, {"good", "bad", "mood"}).count() == 3);
  const std::string accent = "\u00e9", before(39, 'w');  // where a message cuts a text short
  write_bytes(scratch / "a.csv", before + accent + ",mood\na,good\nb,bad\n");
  CHECK_THAT(error_of<FileError>([&] { read_labelled_text(scratch / "a.csv"); }),
             Contains("'" + before + "..', 'mood'"));
}

TEST_CASE("training and evaluating tell which columns they do not read", "[command]") {
  const Scratch scratch;
  std::string csv = "title,Text,Label\n";
  for (int i = 0; i < 20; ++i) csv += i % 2 ? "t,a b,x\n" : "t,c d,y\n";
  write_bytes(scratch / "a.csv", csv);
  const std::string told = "a.csv: text: 'Text', label: 'Label'; not read: 'title'\n";
  const Finished trained = run_cinta({"train", "classify", "--data", scratch / "a.csv", "--output_dir",
                                      scratch / "model", "--max_steps", "1", "--threads", "1"});
  CHECK(trained.code == 0);
  CHECK_THAT(trained.error, Contains(told));
  const Arguments eval{"eval", "--data", scratch / "a.csv", "--model", scratch / "model"};
  CHECK_THAT(run_cinta(eval).error, Contains(told));
  CHECK(run_cinta(eval + Arguments{"--quiet"}).error.empty());
  CHECK_THAT(run_cinta({"train", "classify", "--help"}).out, Contains("label: label, labels, sentiment"));
}
