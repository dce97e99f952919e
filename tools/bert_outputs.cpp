// Reading tokens, batching, and the heads by name.
#include "tools/bert_outputs.h"

#include <algorithm>
#include <span>

#include "cinta/data/sharded_safetensors.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/shape.h"

namespace cinta::tools {
namespace {

/// A matrix of whole numbers in a safetensors file, as i64; absent when the file has none of that name.
Tensor read_matrix(const data::SafetensorsFile& file, const char* name) {
  const data::SafetensorsEntry* entry = file.find(name);
  if (!entry) return {};
  require<FileError>(entry->shape.size() == 2 && !is_floating(entry->dtype), "predict", Where(), file.path(), ": ",
                     name, " is a matrix [samples, length] of whole numbers");
  return cast(file.tensor(*entry), Dtype::i64);
}

/// Throws FileError for a number of `matrix`, which may be absent, that is not in [0, limit).
void check_range(const Tensor& matrix, const char* name, const char* limit_name, int64_t limit,
                 const std::string& path) {
  if (!matrix) return;
  int64_t at = 0;
  for (const int64_t value : to_vector<int64_t>(matrix)) {
    require<FileError>(value >= 0 && value < limit, "predict", Where(), path, ": ", name, ": row ", at / matrix.size(1),
                       ", position ", at % matrix.size(1), " holds ", value, ", the model's ", limit_name, " is ",
                       limit);
    ++at;
  }
}

/// Samples begin .. end - 1, without the places that are padding in all of them.
models::TokenBatch rows_of(const models::TokenBatch& tokens, int64_t begin, int64_t end) {
  models::TokenBatch out;
  int64_t width = tokens.ids.size(1);
  if (tokens.lengths) {
    out.lengths = slice(tokens.lengths, 0, begin, end);
    width = std::ranges::max(to_vector<int32_t>(out.lengths));
  }
  auto cut = [&](const Tensor& all) { return contiguous(slice(slice(all, 0, begin, end), 1, 0, width)); };
  out.ids = cut(tokens.ids);
  if (tokens.types) out.types = cut(tokens.types);
  return out;
}

/// Runs `forward` on the samples of `tokens`, `batch_size` at a time, and joins what it gives; what a model says of
/// every place is 0 at those that its batch did not have.
template <class Forward>
Outputs in_batches(const models::TokenBatch& tokens, int64_t batch_size, Forward forward) {
  std::vector<std::vector<Tensor>> parts;
  Outputs outputs;
  for (int64_t begin = 0; begin < tokens.ids.size(0); begin += batch_size) {
    const int64_t end = std::min(begin + batch_size, tokens.ids.size(0));
    const models::TokenBatch batch = rows_of(tokens, begin, end);
    const int64_t missing = tokens.ids.size(1) - batch.ids.size(1);
    outputs = forward(batch);
    parts.resize(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor& part = outputs[i].tensor;
      parts[i].push_back(part.rank() == 3 && missing > 0 ? pad(part, 1, 0, missing) : part);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i].tensor = concat(parts[i], 0);
  return outputs;
}

/// Some bodies are saved without one.
bool has_pooler(const std::string& directory) {
  const data::SafetensorsSet files = data::SafetensorsSet::open(directory);
  return std::ranges::any_of(files.tensors(), [](const data::StoredTensor& tensor) {
    return tensor.entry->name.ends_with("pooler.dense.weight");
  });
}

}  // namespace

models::TokenBatch read_tokens(const std::string& path, const models::BertConfig& config) {
  const data::SafetensorsFile file = data::SafetensorsFile::open(path);
  models::TokenBatch batch{read_matrix(file, "input_ids"), read_matrix(file, "token_type_ids"), {}};
  require<FileError>(bool(batch.ids), "predict", Where(), path, ": has no tensor called input_ids");
  for (const data::SafetensorsEntry& entry : file.entries())
    require<FileError>(entry.name == "input_ids" || entry.name == "attention_mask" || entry.name == "token_type_ids",
                       "predict", Where(), path, ": holds '", entry.name,
                       "', which is none of input_ids, attention_mask and token_type_ids");
  require<FileError>(batch.ids.numel() > 0, "predict", Where(), path, ": input_ids is empty: ", batch.ids);
  const Tensor mask = read_matrix(file, "attention_mask");
  for (const Tensor& other : {batch.types, mask})
    require<FileError>(!other || other.shape() == batch.ids.shape(), "predict", Where(), path,
                       ": token_type_ids and attention_mask have the shape of input_ids, ", batch.ids);
  require<FileError>(batch.ids.size(1) <= config.max_position_embeddings, "predict", Where(), path,
                     ": input_ids has rows of ", batch.ids.size(1), " tokens, the model positions for ",
                     config.max_position_embeddings);
  check_range(batch.ids, "input_ids", "vocab_size", config.vocab_size, path);
  check_range(batch.types, "token_type_ids", "type_vocab_size", config.type_vocab_size, path);
  if (!mask) return batch;
  const std::vector<int64_t> bits = to_vector<int64_t>(mask);
  const size_t length = static_cast<size_t>(mask.size(1));
  std::vector<int32_t> lengths;
  for (size_t begin = 0; begin < bits.size(); begin += length) {
    const auto row = std::span(bits).subspan(begin, length);
    const int64_t ones = std::ranges::count(row, 1);
    const bool prefix = ones > 0 &&
                        std::all_of(row.begin(), row.begin() + ones, [](int64_t bit) { return bit == 1; }) &&
                        std::all_of(row.begin() + ones, row.end(), [](int64_t bit) { return bit == 0; });
    require<FileError>(prefix, "predict", Where(), path, ": attention_mask: row ", begin / std::max<size_t>(1, length),
                       " is not ones and then zeros");
    lengths.push_back(static_cast<int32_t>(ones));
  }
  batch.lengths = from_values(lengths, {static_cast<int64_t>(lengths.size())});
  return batch;
}

models::TokenBatch encode(const data::LabelledText& texts, const data::WordPiece& tokenizer, int64_t longest,
                          const ModelOptions& notes) {
  std::vector<data::Encoding> encodings;
  size_t width = 1, cut = 0;
  for (size_t i = 0; i < texts.count(); ++i) {
    data::Encoding encoding = encode_sample(texts, i, tokenizer, longest + 1);
    if (static_cast<int64_t>(encoding.ids.size()) > longest) {
      encoding = encode_sample(texts, i, tokenizer, longest);
      ++cut;
    }
    width = std::max(width, encoding.ids.size());
    encodings.push_back(std::move(encoding));
  }
  if (cut > 0)
    notes.note(join(cut, " of ", texts.count(), " texts are cut to the ", longest, " tokens that the model takes"));
  std::vector<int64_t> ids, types;
  std::vector<int32_t> lengths;
  const int32_t padding = tokenizer.vocabulary().id("[PAD]");
  for (data::Encoding& encoding : encodings) {
    lengths.push_back(static_cast<int32_t>(encoding.ids.size()));
    encoding.ids.resize(width, padding);
    encoding.types.resize(width, 0);
    ids.insert(ids.end(), encoding.ids.begin(), encoding.ids.end());
    types.insert(types.end(), encoding.types.begin(), encoding.types.end());
  }
  const int64_t samples = static_cast<int64_t>(texts.count());
  const Shape shape{samples, static_cast<int64_t>(width)};
  return {from_values(ids, shape), from_values(types, shape), from_values(lengths, {samples})};
}

bool has_outputs(const std::string& architecture) {
  return architecture == "BertForMaskedLM" || architecture == "BertForPreTraining" ||
         architecture == "BertForSequenceClassification" || architecture == "BertModel";
}

Outputs run_bert(const ModelOptions& options, const std::string& architecture, const models::BertConfig& config,
                 const models::TokenBatch& tokens, int64_t batch_size) {
  auto unflattened = [](const Tensor& logits, const models::TokenBatch& batch) {
    return reshape(logits, {batch.ids.size(0), batch.ids.size(1), logits.size(1)});
  };
  if (architecture == "BertForMaskedLM") {
    models::BertForMaskedLM model(config);
    options.load(model);
    return in_batches(tokens, batch_size, [&](const auto& batch) {
      return Outputs{{"logits", unflattened(model(batch), batch)}};
    });
  }
  if (architecture == "BertForPreTraining") {
    models::BertForPreTraining model(config);
    options.load(model);
    return in_batches(tokens, batch_size, [&](const auto& batch) {
      const auto both = model(batch);
      return Outputs{{"prediction_logits", unflattened(both.masked, batch)},
                     {"seq_relationship_logits", both.next_sentence}};
    });
  }
  if (architecture == "BertModel") {
    models::BertWithoutHead model(config, has_pooler(options.directory));
    options.load(model);
    return in_batches(tokens, batch_size, [&](const auto& batch) {
      const auto [hidden, pooled] = model(batch);
      Outputs outputs{{"last_hidden_state", hidden}};
      if (pooled) outputs.push_back({"pooler_output", pooled});
      return outputs;
    });
  }
  models::BertForSequenceClassification model(config);
  options.load(model);
  return in_batches(tokens, batch_size, [&](const auto& batch) { return Outputs{{"logits", model(batch)}}; });
}

}  // namespace cinta::tools
