// A square of sums in the tiles of AMX: tiles 0 and 1 are its upper sixteen rows, 2 and 3, where there are more than
// those (`two`), its lower ones; 4 to 7 hold what is multiplied. A tile's number is written into the instruction, so
// that no loop goes over them.
#pragma once
#include "cinta/backends/cpu/simd/amx.h"

#include "cinta/backends/cpu/isa_begin.h"

#if CINTA_ISA_LEVEL == 2
/// Two tiles in memory, their rows `bytes` apart.
struct AmxPair {
  const float *first, *second;
  int64_t bytes;
};

/// The sums are zeros from now on, or, if it `adds`, what lies at `sums`, rows `stride` words apart.
template <bool two>
[[gnu::target("amx-tile"), gnu::always_inline]] inline void begin_sums(const float* sums, int64_t stride, bool adds) {
  constexpr int64_t side = 16;
  const int64_t bytes = stride * static_cast<int64_t>(sizeof(float));
  if (adds) {
    _tile_loadd(0, sums, bytes);
    _tile_loadd(1, sums + side, bytes);
    if (!two) return;
    _tile_loadd(2, sums + side * stride, bytes);
    _tile_loadd(3, sums + side * stride + side, bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    if (!two) return;
    _tile_zero(2);
    _tile_zero(3);
  }
}

/// The sums += a times b, each loaded anew or still there from the call before; after each product, between().
template <bool two, bool loads_a, bool loads_b, class Between>
[[gnu::target("amx-tile,amx-bf16"), gnu::always_inline]] inline void add_products(const AmxPair& a, const AmxPair& b,
                                                                                  const Between& between) {
  if (loads_b) _tile_loadd(6, b.first, b.bytes);
  if (loads_a) _tile_loadd(4, a.first, a.bytes);
  _tile_dpbf16ps(0, 4, 6);
  between();
  if (loads_b) _tile_loadd(7, b.second, b.bytes);
  _tile_dpbf16ps(1, 4, 7);
  between();
  if (!two) return;
  if (loads_a) _tile_loadd(5, a.second, a.bytes);
  _tile_dpbf16ps(2, 5, 6);
  between();
  _tile_dpbf16ps(3, 5, 7);
  between();
}

/// Writes the sums.
template <bool two>
[[gnu::target("amx-tile"), gnu::always_inline]] inline void store_sums(float* sums, int64_t stride) {
  constexpr int64_t side = 16;
  const int64_t bytes = stride * static_cast<int64_t>(sizeof(float));
  _tile_stored(0, sums, bytes);
  _tile_stored(1, sums + side, bytes);
  if (!two) return;
  _tile_stored(2, sums + side * stride, bytes);
  _tile_stored(3, sums + side * stride + side, bytes);
}
#endif

#include "cinta/backends/cpu/isa_end.h"
