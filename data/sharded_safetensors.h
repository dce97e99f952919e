// A model's tensors in one .safetensors file, or in several ("shards") and an index that says which holds what, named
// as Python's transformers names them:
//   model.safetensors
//   model-00001-of-00002.safetensors, model-00002-of-00002.safetensors, model.safetensors.index.json
#pragma once
#include <string>
#include <vector>

#include "cinta/data/safetensors.h"

namespace cinta::data {

inline constexpr const char* weights_file = "model.safetensors";
inline constexpr const char* weights_index = "model.safetensors.index.json";

struct SafetensorsIndex;  // safetensors_index.h

/// A tensor and the file it lies in.
struct StoredTensor {
  const SafetensorsEntry* entry;
  const SafetensorsFile* file;
  /// Copies it, row-major, into `destination`, which holds entry->size_bytes() bytes.
  void read(void* destination, Where where = Where::current()) const { file->read(*entry, destination, where); }
  Tensor tensor(Where where = Where::current()) const;
};

/// All tensors of a model, opened for reading, in one file or in many.
class SafetensorsSet {
 public:
  /// `path` is a .safetensors file, an .index.json, or a directory with model.safetensors or else (the order of
  /// transformers) model.safetensors.index.json. Throws FileError where one of the files is damaged, a shard lacks a
  /// tensor that the index puts there or has one that it does not, or total_size is not the tensors' size.
  static SafetensorsSet open(const std::string& path, Where where = Where::current());

  /// The file, or the index: what a message about the whole names.
  const std::string& path() const { return path_; }
  const std::vector<SafetensorsFile>& files() const { return files_; }
  /// In the order of the files and of their bytes. Valid as long as the set.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }

 private:
  void check(const SafetensorsIndex& index, Where where) const;

  std::string path_;
  std::vector<SafetensorsFile> files_;
  std::vector<StoredTensor> tensors_;
};

/// A file of a model to be written, and which of the tensors it holds.
struct Shard {
  std::string name;
  std::vector<size_t> tensors;
};

/// Deals tensors of these sizes, in their order, to files of at most `most_bytes` (headers not counted); a tensor
/// larger than that has a file alone.
std::vector<Shard> deal_shards(const std::vector<uint64_t>& sizes, uint64_t most_bytes);

/// The index of tensors called `names` in `shards`, as transformers spells it.
std::string safetensors_index_text(const std::vector<Shard>& shards, const std::vector<std::string>& names,
                                   uint64_t total_size);

}  // namespace cinta::data
