// Opening a model's files, and holding a set of shards against its index.
#include "cinta/data/sharded_safetensors.h"

#include <filesystem>
#include <set>

#include "cinta/core/tensor.h"
#include "cinta/data/atomic_file.h"
#include "cinta/data/file.h"
#include "cinta/data/safetensors_header.h"
#include "cinta/data/safetensors_index.h"

namespace cinta::data {

namespace fs = std::filesystem;

Tensor StoredTensor::tensor(Where where) const { return file->tensor(*entry, where); }

SafetensorsSet SafetensorsSet::open(const std::string& path, Where where) {
  SafetensorsSet set;
  set.path_ = path;
  std::error_code unknown;  // what cannot be looked at is for open() to complain of
  if (fs::is_directory(path, unknown)) {
    const bool single = fs::exists(path + "/" + weights_file, unknown),
               sharded = !single && fs::exists(path + "/" + weights_index, unknown);
    const std::string pickled = path + "/pytorch_model.bin";
    require<FileError>(single || sharded || !fs::exists(pickled, unknown), "safetensors", where, pickled,
                       ": is not read, since unpickling runs what the file says; in Python, "
                       "transformers' save_pretrained() writes the same model as ",
                       weights_file);
    set.path_ = path + "/" + (sharded ? weights_index : weights_file);
  }
  if (set.path_.ends_with(".index.json")) {
    const SafetensorsIndex index =
        parse_safetensors_index(read_file(set.path_, max_safetensors_header, where), set.path_, where);
    std::set<std::string> names;
    for (const auto& [tensor, shard] : index.shards) names.insert(shard);
    for (const std::string& name : names)
      set.files_.push_back(SafetensorsFile::open(parent_of(set.path_) + "/" + name, where));
    set.check(index, where);
  } else {
    set.files_.push_back(SafetensorsFile::open(set.path_, where));
  }
  for (const SafetensorsFile& file : set.files_)
    for (const SafetensorsEntry& entry : file.entries()) set.tensors_.push_back({&entry, &file});
  return set;
}

void SafetensorsSet::check(const SafetensorsIndex& index, Where where) const {
  uint64_t total = 0;
  for (const SafetensorsFile& file : files_) {
    const FileComplaint complain{file.path(), where};
    const std::string name = name_of_path(file.path());
    for (const SafetensorsEntry& entry : file.entries()) {
      const auto found = index.shards.find(entry.name);
      if (found == index.shards.end())
        complain("found the tensor '", printable(entry.name), "', which ", path_, " does not name");
      if (found->second != name)
        complain("found the tensor '", printable(entry.name), "', expected it in ", found->second, ", where ", path_,
                 " puts it");
      total += entry.size_bytes();
    }
    for (const auto& [tensor, shard] : index.shards)
      if (shard == name && !file.find(tensor))
        complain("found no tensor '", printable(tensor), "', which ", path_, " puts here");
  }
  if (index.total_size && *index.total_size != total)
    FileComplaint{path_, where}("metadata: found the total_size ", *index.total_size, ", expected ", total,
                                ", the bytes of all tensors in ", files_.size(), " files");
}

}  // namespace cinta::data
