// The files of a model in a checkpoint, under the names that Python users know.
#pragma once
#include "cinta/data/wordpiece.h"
#include "cinta/models/transformer_model.h"
#include "cinta/train/checkpoint_directory.h"

namespace cinta::train {

/// model.safetensors and config.json.
void write_model(CheckpointWriter& writer, const models::TransformerModel& model);
/// vocab.txt and tokenizer_config.json.
void write_tokenizer(CheckpointWriter& writer, const data::WordPiece& tokenizer, int64_t longest);

}  // namespace cinta::train
