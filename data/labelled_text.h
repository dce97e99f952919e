// Texts with classes: what a text classifier is trained on. Read from CSV (RFC 4180), TSV or JSON lines, plain or gzip.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cinta/data/bad_utf8.h"
#include "cinta/data/loader.h"
#include "cinta/data/sequences.h"
#include "cinta/data/wordpiece.h"

namespace cinta::data {

struct LabelledText {
  std::vector<std::string> first, second;  ///< `second` is empty unless the samples are pairs
  std::vector<std::string> labels;         ///< empty where the file has none
  std::vector<int64_t> lines = {};         ///< of the file, that each sample begins in; empty where there is no file
  int64_t guessed_column = 0;  ///< from 1: that of the labels, where the file does not name it and they may be texts
  std::string note = {};       ///< how the columns are read, where they have no names or not all are read
  size_t count() const { return first.size(); }
};

/// Reads a file by its ending, in capitals or not: .csv, .tsv or .jsonl, or with any other one text a line; each also
/// with .gz. columns_by_name() says what the columns (keys) are. A table whose first line names none of them holds the
/// text and then the label in its last column, or nothing but text, where a blank line is an empty one.
/// Throws FileError naming file, line and what was found: a ragged row, a quote that is never closed, JSON that is no
/// object of texts, an empty label, text that is not UTF-8 (unless `on_bad` has such bytes replaced), and in a last
/// column without a name what is none of the `classes` and so perhaps a text; where there are none, anything may be.
LabelledText read_texts(const std::string& path, BadUtf8 on_bad = BadUtf8::error,
                        const std::vector<std::string>& classes = {}, Where where = Where::current());
/// The same for a file that must have labels. Throws FileError also for another ending, and where there are no
/// `classes` to tell by, for a first line that may be names: its label is nowhere else.
LabelledText read_labelled_text(const std::string& path, BadUtf8 on_bad = BadUtf8::error,
                                const std::vector<std::string>& classes = {}, Where where = Where::current());

/// The distinct labels in ascending order; whole numbers by value.
std::vector<std::string> label_names(const std::vector<std::string>& labels);

/// Names for a message, not more than ten.
std::string first_few(const std::vector<std::string>& names);

/// Samples ready for a classifier.
struct ClassifiedSequences {
  Sequences sequences;
  std::vector<int64_t> types;   ///< [count, length]; empty unless the samples are pairs
  std::vector<int64_t> labels;  ///< [count], places in the list of names
};

/// Sample `i`, framed and cut to `length` tokens.
Encoding encode_sample(const LabelledText& text, size_t i, const WordPiece& tokenizer, int64_t length,
                       Where where = Where::current());

/// Frames each text (or pair), cut to `length` tokens and padded. Throws ValueError for a label that is not among
/// `names`, naming its line (or sample) and them. `name` stands for the text in messages.
ClassifiedSequences encode(const LabelledText& text, const WordPiece& tokenizer, const std::vector<std::string>& names,
                           int64_t length, const std::string& name = "text", Where where = Where::current());

/// The given samples, in the given order.
LabelledText select(const LabelledText& text, std::span<const int64_t> rows);

/// Shuffled classified sequences: ids, lengths, types where there are any, and a label a sample. `sequences` must
/// outlive this.
class ClassifiedBatches : public BatchSource {
 public:
  ClassifiedBatches(const ClassifiedSequences& sequences, int64_t batch_size, uint64_t seed,
                    Where where = Where::current(), Balance balance = Balance::samples);
  Batch batch(int64_t step) const override;
  double epoch(int64_t step) const override { return order_.epoch(step); }
  /// Samples begin .. end - 1 in their own order.
  Batch slice(int64_t begin, int64_t end) const;

 private:
  Batch gather(std::span<const int64_t> samples) const;
  const ClassifiedSequences& sequences_;
  Order order_;
};

}  // namespace cinta::data
