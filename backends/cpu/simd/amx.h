// The tiles of AMX (Intel, "Architecture Instruction Set Extensions Programming Reference", chapter 3): eight squares
// that hold 16 rows of 64 bytes at most. Only where isa_level() reaches isa_amx.
#pragma once
#include <cstdint>
#if CINTA_ISA_LEVEL == 2
#include <immintrin.h>
#endif

#include "cinta/backends/cpu/isa_begin.h"

#if CINTA_ISA_LEVEL == 2
/// While alive, the calling thread has tiles of 64 bytes a row and of so many rows.
template <uint8_t... heights>
class AmxTiles {
 public:
  [[gnu::target("amx-tile")]] AmxTiles() {
    static constexpr Shapes shapes{.bytes = {((void)heights, uint16_t{64})...}, .rows = {heights...}};
    _tile_loadconfig(&shapes);
  }
  [[gnu::target("amx-tile")]] ~AmxTiles() { _tile_release(); }
  AmxTiles(const AmxTiles&) = delete;

 private:
  struct Shapes {
    uint8_t palette = 1, first_row = 0, reserved[14]{};
    uint16_t bytes[16]{};  ///< of a row
    uint8_t rows[16]{};
  };
};

/// Between writing to memory and loading a tile from it: GCC's intrinsics do not say that they read.
inline void finish_stores() { asm volatile("" ::: "memory"); }
#endif

#include "cinta/backends/cpu/isa_end.h"
