// Philox4x32-10: every random number is a pure function of (seed, stream, step, element), never of hidden state.
// Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace cinta {

using PhiloxBlock = std::array<uint32_t, 4>;

/// Ten rounds of Philox4x32 on `counter` under `key`.
constexpr PhiloxBlock philox4x32(PhiloxBlock counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0], b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// A stream's number from its name (FNV-1a), so that a parameter or a dropout site keeps its numbers wherever it is
/// built.
constexpr uint32_t stream_id(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

/// Four random words: those of elements 4*block .. 4*block+3 in stream `stream` at step `step`.
constexpr PhiloxBlock random_block(uint64_t seed, uint32_t stream, uint32_t step, uint64_t block) {
  return philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), stream, step},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

/// The random word of one element.
constexpr uint32_t random_word(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element) {
  return random_block(seed, stream, step, element / 4)[element % 4];
}

/// Uniform in [0, 1) with 24 bits, exact in f32.
constexpr float to_uniform(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

/// Uniform integer in [0, bound), bound > 0, without modulo bias worth speaking of (64-bit multiply-shift).
constexpr uint64_t to_below(uint32_t high, uint32_t low, uint64_t bound) {
  const uint64_t word = (uint64_t{high} << 32) | low;
  return static_cast<uint64_t>((static_cast<unsigned __int128>(word) * bound) >> 64);
}

/// Standard normal of one element (Box-Muller on its pair of words, in double).
double random_normal(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element);

}  // namespace cinta
