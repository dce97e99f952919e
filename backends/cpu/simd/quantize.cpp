// Narrow formats, exactly, without a branch for an element: magnitudes are compared and rounded as whole numbers.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/convert.h"
#include "cinta/backends/kernels/quantize.h"
#include "cinta/core/dtype.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

using kernels::Blocks;

constexpr int64_t piece = 512;  // elements converted at once

/// Calls f(row, block column, values, first column, count) for `rows` rows of x from `row` on, in pieces that lie in
/// one block, converted to f32 where they are not.
template <class F>
void each_piece(const View& x, Blocks blocks, int64_t row, int64_t rows, F f) {
  const int64_t columns = x.size(1);
  float buffer[piece];
  for (int64_t i = row; i < row + rows; ++i)
    for (int64_t begin = 0; begin < columns;) {
      const int64_t block = begin / blocks.columns;
      const int64_t count = std::min({piece, (block + 1) * blocks.columns - begin, columns - begin});
      const int64_t first = i * columns + begin;
      const float* values = x.as<const float>() + first;
      if (x.dtype != Dtype::f32) {
        load(buffer, x.dtype, x.data, first, 1, count);
        values = buffer;
      }
      f(i, block, values, begin, count);
      begin += count;
    }
}

/// The bits of the greatest magnitude: as whole numbers NaN > infinity > all else.
uint32_t greatest(const float* x, int64_t count) {
  uint32_t out = 0;
#pragma omp simd reduction(max : out)
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu;
    out = magnitude > out ? magnitude : out;
  }
  return out;
}

void find_largest(View largest, View x, Blocks blocks) {
  const int64_t columns = largest.size(1), step = rows_of_tile(x.size(1));
  uint32_t* out = largest.as<uint32_t>();
  std::fill_n(out, largest.numel(), 0u);
  if (x.numel() == 0) return;
  parallel_for(x.size(0), step, [&](int64_t begin, int64_t end) {
    each_piece(x, blocks, begin, end - begin,
               [&](int64_t row, int64_t block, const float* values, int64_t, int64_t count) {
                 const std::atomic_ref<uint32_t> place(out[row / blocks.rows * columns + block]);
                 const uint32_t found = greatest(values, count);
                 for (uint32_t before = place.load(std::memory_order_relaxed);
                      before < found && !place.compare_exchange_weak(before, found, std::memory_order_relaxed);) {
                 }
               });
  });
}

struct Counts {
  int64_t too_large = 0, vanished = 0;
};

template <class Bits, int E, int M, int Bias, Specials S, Overflow Usual>
Counts encode(NarrowFloat<Bits, E, M, Bias, S, Usual>* out, const float* x, float scale, int64_t count) {
  using Format = NarrowFloat<Bits, E, M, Bias, S, Usual>;
  constexpr uint32_t largest = std::bit_cast<uint32_t>(Format::decode(Format::max_code));
  constexpr uint32_t least_normal = uint32_t(1 - Bias + 127) << 23, cut = 23 - M;
  constexpr Bits not_a_number = Format::encode(std::bit_cast<float>(0x7fc00000u));
  // A unit in the last place of this number is the smallest subnormal: adding it rounds to a multiple of that.
  constexpr float aligner = std::bit_cast<float>(uint32_t(23 + 1 - Bias - M + 127) << 23);
  int32_t too_large = 0, vanished = 0;
#pragma omp simd reduction(+ : too_large, vanished)
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t word = std::bit_cast<uint32_t>(x[i] * scale), magnitude = word & 0x7fffffffu;
    const uint32_t bounded = magnitude > largest ? largest : magnitude;
    const uint32_t normal =
        ((bounded + ((1u << (cut - 1)) - 1) + ((bounded >> cut) & 1u)) >> cut) - (uint32_t(127 - Bias) << M);
    const uint32_t small =
        std::bit_cast<uint32_t>(std::bit_cast<float>(bounded) + aligner) - std::bit_cast<uint32_t>(aligner);
    const uint32_t rounded = bounded < least_normal ? small : normal;
    const uint32_t sign = S == Specials::fnuz && rounded == 0 ? 0u : word >> 31 << (E + M);
    const uint32_t nan = S == Specials::fnuz ? uint32_t{not_a_number} : (uint32_t{not_a_number} | sign);
    const bool is_nan = magnitude > 0x7f800000u;
    out[i].bits = static_cast<Bits>(is_nan ? nan : (sign | rounded));
    too_large += !is_nan && magnitude > largest;
    vanished += !is_nan && rounded == 0 && x[i] != 0;
  }
  return {too_large, vanished};
}

/// To TF32, in f32.
Counts encode(float* out, const float* x, float scale, int64_t count) {
  constexpr uint32_t largest = 0x7f7fe000u;  // of TF32
  int32_t too_large = 0, vanished = 0;
#pragma omp simd reduction(+ : too_large, vanished)
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t word = std::bit_cast<uint32_t>(x[i] * scale), magnitude = word & 0x7fffffffu;
    const uint32_t rounded = (word + 0xfffu + ((word >> 13) & 1u)) & ~0x1fffu;
    const bool is_nan = magnitude > 0x7f800000u;
    out[i] = std::bit_cast<float>(is_nan ? word | 0x400000u : rounded);
    too_large += static_cast<int32_t>(!is_nan && magnitude > largest);
    vanished += static_cast<int32_t>(!is_nan && (rounded & 0x7fffffffu) == 0 && x[i] != 0);
  }
  return {too_large, vanished};
}

template <class Code>
void quantize_as(const View& codes, const View& x, const View& scales, Blocks blocks, const View& counts) {
  const int64_t columns = x.size(1), step = rows_of_tile(columns);
  int64_t* total = counts ? counts.as<int64_t>() : nullptr;
  if (total) total[0] += x.numel();
  parallel_for(x.size(0), step, [&](int64_t begin, int64_t end) {
    Counts sum;
    each_piece(x, blocks, begin, end - begin,
               [&](int64_t row, int64_t block, const float* values, int64_t first, int64_t count) {
                 const float scale =
                     scales ? scales.as<const float>()[row / blocks.rows * scales.stride(1) + block * scales.stride(2)]
                            : 1;
                 const Counts part = encode(codes.as<Code>() + row * columns + first, values, scale, count);
                 sum.too_large += part.too_large;
                 sum.vanished += part.vanished;
               });
    if (!total) return;
    std::atomic_ref(total[1]).fetch_add(sum.too_large, std::memory_order_relaxed);
    std::atomic_ref(total[2]).fetch_add(sum.vanished, std::memory_order_relaxed);
  });
}

void quantize_matrix(View codes, View x, View scales, Blocks blocks, View counts) {
  if (x.numel() == 0) return;
  visit(codes.dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, float> || (!std::is_arithmetic_v<T> && sizeof(T) == 1))
      quantize_as<T>(codes, x, scales, blocks, counts);
    else
      require<DtypeError>(false, "quantize", Where(), "codes of 8 bits, or f32 for TF32, given ", codes.dtype);
  });
}

const InstallSimd block_amax{kernels::block_amax, find_largest};
const InstallSimd quantize{kernels::quantize, quantize_matrix};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
