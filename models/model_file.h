// A model's weights in a safetensors file, under the names that Python users know.
#pragma once
#include "cinta/data/safetensors.h"
#include "cinta/models/module.h"

namespace cinta::models {

/// The tensors of a module as a safetensors writer takes them. `hold` keeps the bytes alive (copies of what does not
/// lie contiguous in host memory).
std::vector<data::TensorBytes> file_tensors(const std::vector<NamedTensor>& tensors, std::vector<Tensor>& hold);

/// Writes tensors into `sink` as a safetensors file.
void write_tensors(const std::vector<NamedTensor>& tensors, data::ByteSink& sink, Where where = Where::current());
/// Writes all of a module's tensors to `path`, which is replaced as a whole or not at all.
void save_weights(const Module& module, const std::string& path, Where where = Where::current());

/// The class that the config.json in `directory` names ("BertForMaskedLM"), or where it names none its model_type
/// ("mlp"). Throws FileError where there is neither.
std::string model_name(const std::string& directory, Where where = Where::current());
/// The same of a config.json's text, empty where it names neither; `path` is for errors.
std::string model_name_in(const std::string& text, const std::string& path, Where where = Where::current());

/// What loading did, by name.
struct LoadReport {
  std::vector<std::string> loaded;
  std::vector<std::string> missing;  ///< in the model, not in the file: left as they were
  std::vector<std::string> unused;   ///< in the file, not in the model
  /// A table of the three, a line each.
  std::string text() const;
};

/// Fills the module from `path`: a safetensors file, the index of a sharded model, or a directory with either (as
/// data::SafetensorsSet::open() takes them). Accepts old names (LayerNorm.gamma and .beta), a missing or additional
/// "bert." prefix, and any floating-point type (converted to the parameter's). Throws FileError, with nothing changed,
/// for a tensor of another shape, and for a missing one whose name does not start with one of `optional_prefixes`; it
/// names each of them. What starts with one of `new_prefixes` (a head that is trained anew) counts as missing even
/// where the file has it.
LoadReport load_weights(Module& module, const std::string& path, const std::vector<std::string>& optional_prefixes = {},
                        const std::vector<std::string>& new_prefixes = {}, Where where = Where::current());

}  // namespace cinta::models
