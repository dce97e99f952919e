// Names and contents come from the parts; here they meet.
#include "cinta/train/model_files.h"

#include "cinta/data/wordpiece_files.h"
#include "cinta/models/model_file.h"

namespace cinta::train {

void write_model(CheckpointWriter& writer, const models::TransformerModel& model) {
  models::write_tensors(model.named_tensors(), writer.add("model.safetensors"));
  writer.add("config.json").write_text(model.config().to_json(model.architecture()));
}

void write_tokenizer(CheckpointWriter& writer, const data::WordPiece& tokenizer, int64_t longest) {
  for (const auto& [name, text] : data::wordpiece_files(tokenizer, longest)) writer.add(name).write_text(text);
}

}  // namespace cinta::train
