// BERT's configuration, under the keys of the config.json that Python users know.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cinta/core/error.h"
#include "cinta/ops/matmul.h"

namespace cinta::models {

struct BertConfig {
  int64_t vocab_size = 30522;
  int64_t hidden_size = 768;
  int64_t num_hidden_layers = 12;
  int64_t num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  std::string hidden_act = "gelu";  ///< gelu, gelu_new (tanh), relu, silu
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double classifier_dropout = -1;  ///< before a classifier's last layer; -1 (null in a file): hidden_dropout_prob
  int64_t max_position_embeddings = 512;
  int64_t type_vocab_size = 2;
  double initializer_range = 0.02;
  double layer_norm_eps = 1e-12;
  int64_t pad_token_id = 0;  ///< whose word vector learns nothing as input; -1 (null in a file): none
  int64_t num_labels = 2;
  std::vector<std::string> label_names = {};  ///< of a classifier, by number; empty: LABEL_0, LABEL_1, ..
  std::string problem_type = {};              ///< of a classifier's file, in the words of transformers; empty: not said

  /// Sizes by name: tiny (2 layers of 128), mini (4 of 256), small (4 of 512), base (12 of 768), large (24 of 1024).
  static BertConfig named(std::string_view name, Where where = Where::current());
  /// Throws ValueError naming the key, what was found and what is possible.
  void check(Where where = Where::current()) const;
  Activation activation(Where where = Where::current()) const;
  std::string label_name(int64_t label) const;
  /// What a classifier does that does not choose one of several labels, but tells a number, or each label by itself:
  /// "num_labels is 1"; else empty.
  std::string other_task() const;
  /// Throws FileError where the classifier in `directory` has another task.
  void require_one_of_labels(const std::string& directory, Where where = Where::current()) const;
  /// The deviation of the first weights that belongs to the width. BERT's 0.02 belongs to its 768: a narrow model that
  /// starts with it sees all positions alike for the first thousands of steps; scaled to the width, it begins to read
  /// its context within hundreds.
  double scaled_initializer_range() const;

  /// The text of a config.json that the Python library opens as `architecture`, e.g. "BertForMaskedLM".
  std::string to_json(std::string_view architecture) const;
  /// Throws FileError naming `path` and the key for anything missing, of another kind, or not supported.
  static BertConfig from_json(const std::string& text, const std::string& path, Where where = Where::current());
};

/// The configuration of the model in `directory`, from its config.json.
BertConfig read_config(const std::string& directory, Where where = Where::current());
/// What differs between two configurations: "hidden_size: 128 in the file, 256 here; vocab_size: ...". Empty if
/// nothing.
std::string difference(const BertConfig& file, const BertConfig& here);
/// Reads the config.json in `directory`. Throws FileError that names each difference to `here`.
void require_same(const std::string& directory, const BertConfig& here, Where where = Where::current());

}  // namespace cinta::models
