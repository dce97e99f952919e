// Fuzz target of the safetensors header: any bytes give either a header whose tensors tile the data, or a FileError.
// With clang 16 or newer:
//   clang++-16 -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude tests/fuzz/safetensors.cpp
//     data/safetensors_header.cpp data/safetensors_layout.cpp core/error.cpp -o fuzz
//   ./fuzz -max_len=512      benchmarks/results/fuzz.md records a run
#include <cstdlib>
#include <cstring>

#include "cinta/data/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, size_t size) {
  using namespace cinta;
  using namespace cinta::data;
  unsigned char prefix[8];
  if (size < sizeof prefix) return 0;
  std::memcpy(prefix, bytes, sizeof prefix);
  try {
    const uint64_t length = safetensors_header_length(prefix, size, "fuzz", Where::current());
    const std::string_view json(reinterpret_cast<const char*>(bytes) + sizeof prefix, length);
    const uint64_t data_size = size - sizeof prefix - length;
    const auto header = parse_safetensors_header(json, data_size, "fuzz", Where::current());
    uint64_t sum = 0;
    for (const auto& entry : header.entries) {
      if (entry.begin != sum || entry.size_bytes() != safetensors_size(entry.dtype, entry.shape)) std::abort();
      sum = entry.end;
    }
    if (sum != data_size) std::abort();
  } catch (const FileError&) {
  }
  return 0;
}
