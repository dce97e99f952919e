// What a file may call a BERT's tensors. Cinta's names are those of today's transformers; files of its first years and
// files of a body alone have others.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace cinta::models {

enum class BertNames {
  hf,    ///< as transformers and Cinta write them: bert.encoder.layer.0.output.LayerNorm.weight
  old,   ///< as in the first files: bert.encoder.layer.0.output.LayerNorm.gamma, and .beta for .bias
  bare,  ///< the body alone, as BertModel is saved: encoder.layer.0.output.LayerNorm.weight
};

/// The present name of a tensor that an old file calls otherwise: LayerNorm.weight for LayerNorm.gamma.
std::string present_name(std::string_view name);

/// Whether `name`, with or without "bert.", is of the body and not of a head.
bool is_body_name(std::string_view name);

/// `name`, of whatever kind, in another: nothing for a head's where only the body is kept.
std::optional<std::string> renamed(std::string_view name, BertNames to);

}  // namespace cinta::models
