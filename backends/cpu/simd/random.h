// Random words and dropout masks, many at a time, for every kernel that draws.
#pragma once
#include "cinta/backends/kernels/random.h"

namespace cinta {

/// Where random words come from, read from the device's record {seed, step, first_sample}.
struct WordSource {
  WordSource() = default;
  WordSource(const View& state, uint32_t stream);
  uint64_t seed = 0;
  uint32_t stream = 0, step = 0;
  int64_t first_sample = 0;
};

/// A dropout site as its kernels use it, read from the device's record.
struct DropoutRecord : WordSource {
  explicit DropoutRecord(const kernels::Dropout& dropout);
  /// The number of the first element of row `row`, of n elements.
  uint64_t first_element(int64_t row, int64_t n) const {
    return static_cast<uint64_t>((first_row + (rows ? rows[row] : row)) * n);
  }
  const int64_t* rows = nullptr;
  int64_t first_row = 0;
  uint32_t threshold = 0;  ///< an element is kept iff its word is at least this
  float scale = 1;         ///< of kept elements
};

}  // namespace cinta

#include "cinta/backends/cpu/isa_begin.h"

/// out[i] = the word of element first + i.
void random_words(uint32_t* out, const WordSource& source, uint64_t first, int64_t count);
/// out[i] = scale where element first + i is kept, 0 where it is dropped.
void dropout_factors(float* out, const DropoutRecord& site, uint64_t first, int64_t count);

/// x masked by its factor: a dropped element is 0 whatever it was.
inline float masked(float x, float factor) { return factor == 0 ? 0 : x * factor; }

#include "cinta/backends/cpu/isa_end.h"
