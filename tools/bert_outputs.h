// Tokens into a BERT of any head, and what comes out, by the names that Python users know.
#pragma once
#include <string>
#include <vector>

#include "cinta/data/labelled_text.h"
#include "cinta/models/bert/bert.h"
#include "tools/model_options.h"

namespace cinta::tools {

using Outputs = std::vector<models::NamedTensor>;

/// input_ids [samples, length] of a safetensors file, and where they are there token_type_ids and attention_mask (ones,
/// then zeros). Throws FileError naming file and tensor, also for any other tensor, and for numbers and lengths that
/// the model of `config` has no row for.
models::TokenBatch read_tokens(const std::string& path, const models::BertConfig& config);

/// Texts or pairs as tokens, padded to the longest, each cut to `longest`; a note says how many are.
models::TokenBatch encode(const data::LabelledText& texts, const data::WordPiece& tokenizer, int64_t longest,
                          const ModelOptions& notes);

/// Whether run_bert() knows the class.
bool has_outputs(const std::string& architecture);

/// What the model, of the class and configuration that its config.json names, gives for `tokens`: logits (of each
/// token, or of each sample for a classifier); prediction_logits and seq_relationship_logits for BertForPreTraining;
/// last_hidden_state and, where there is a pooler, pooler_output for BertModel.
Outputs run_bert(const ModelOptions& model, const std::string& architecture, const models::BertConfig& config,
                 const models::TokenBatch& tokens, int64_t batch_size);

}  // namespace cinta::tools
