// The index of a sharded model, model.safetensors.index.json.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cinta/core/error.h"

namespace cinta::data {

/// What an index says.
struct SafetensorsIndex {
  std::optional<uint64_t> total_size;         ///< bytes of all tensors; some writers leave it out
  std::map<std::string, std::string> shards;  ///< tensor -> name of the file that holds it
};

/// Throws FileError for damaged JSON, keys twice or unknown, numbers that are none, and names of shards that are not
/// plain names of .safetensors files: no shard lies outside the index's own directory.
SafetensorsIndex parse_safetensors_index(std::string_view json, std::string_view file, Where where = Where::current());

}  // namespace cinta::data
