// Rounding to a narrow format, to nearest or at random: elements in row-major order, whose words lie in that order too,
// through the formats' own functions one by one.
#include "cinta/backends/kernels/round.h"

#include <algorithm>

#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/cpu/layout.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/convert.h"
#include "cinta/backends/cpu/simd/random.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

/// A view as rows: the whole as one row where the elements lie row-major.
View in_rows(View view) {
  if (view.contiguous()) {
    view.shape = {view.numel()};
    view.strides = {1};
  }
  return view;
}

/// Calls f(offset, i, n) for each stretch of the elements begin + i .. begin + i + n < end that lies in one row.
template <class F>
void each_stretch(const View& view, int64_t begin, int64_t end, F f) {
  const int64_t columns = view.size(-1);
  for (int64_t at = begin; at < end;) {
    const int64_t column = at % columns, n = std::min(end - at, columns - column);
    f(row_offset(view, at / columns) + column * view.stride(-1), at - begin, n);
    at += n;
  }
}

template <class Format>
void round_as(const View& y, const View& x, const kernels::RoundTo& how) {
  const WordSource source = how.state ? WordSource(how.state, how.stream) : WordSource();
  const uint64_t first = static_cast<uint64_t>(source.first_sample * how.elements_per_sample);
  const Overflow overflow = how.overflow;
  parallel_for(x.numel(), 4096, [&](int64_t tile, int64_t tile_end) {
    constexpr int64_t piece = 512;
    float values[piece];
    uint32_t words[piece];
    for (int64_t begin = tile; begin < tile_end; begin += piece) {
      const int64_t end = std::min(begin + piece, tile_end);
      each_stretch(x, begin, end, [&](int64_t offset, int64_t i, int64_t n) {
        load(values + i, x.dtype, x.data, offset, x.stride(-1), n);
      });
      if (how.state) random_words(words, source, first + static_cast<uint64_t>(begin), end - begin);
      each_stretch(y, begin, end, [&](int64_t offset, int64_t i, int64_t n) {
        Format* out = y.as<Format>() + offset;
        const int64_t stride = y.stride(-1);
        for (int64_t j = 0; j < n; ++j)
          out[j * stride].bits = how.state ? Format::encode_stochastic(values[i + j], words[i + j], overflow)
                                           : Format::encode(values[i + j], overflow);
      });
    }
  });
}

void round_elements(View y, View x, kernels::RoundTo how) {
  kernels::visit_narrow(y.dtype, [&]<class Format>() { round_as<Format>(in_rows(y), in_rows(x), how); });
}

const InstallSimd round_to{kernels::round_to, round_elements, floats_of_32_bits};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
