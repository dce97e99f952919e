// Fuzz target of the index of sharded safetensors: any bytes give either an index all of whose shards are plain names
// of .safetensors files, or a FileError. With clang 16 or newer:
//   clang++-16 -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude tests/fuzz/safetensors_index.cpp
//     data/safetensors_index.cpp data/strict_json.cpp data/safetensors_layout.cpp core/error.cpp -o fuzz
//   ./fuzz -max_len=512      benchmarks/results/fuzz.md records a run
#include <cstdlib>

#include "cinta/data/safetensors_index.h"

namespace cinta::data {

static void try_index(const unsigned char* bytes, size_t size) {
  try {
    const SafetensorsIndex index = parse_safetensors_index({reinterpret_cast<const char*>(bytes), size}, "fuzz");
    for (const auto& [tensor, shard] : index.shards)
      if (shard.find('/') != shard.npos || shard.starts_with('.') || !shard.ends_with(".safetensors")) std::abort();
  } catch (const FileError&) {
  }
}

}  // namespace cinta::data

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, size_t size) {
  cinta::data::try_index(bytes, size);
  return 0;
}
