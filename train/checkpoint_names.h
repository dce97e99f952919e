// How the directories and files of a checkpoint are called; shared by their writer and their finder.
#pragma once
#include <cstdint>
#include <string>

namespace cinta::train {

inline const std::string checkpoint_prefix = "checkpoint-";  ///< checkpoint-500
inline const std::string manifest_name = "manifest.json";

/// A CRC-32 as the manifest spells it.
inline std::string hex_of(uint32_t number) {
  std::string out(8, '0');
  for (int i = 7; i >= 0; --i, number >>= 4) out[size_t(i)] = "0123456789abcdef"[number & 15];
  return out;
}

}  // namespace cinta::train
