// How the directories and files of a run are called; shared by their writers and their finders.
#pragma once
#include <cstdint>
#include <string>

namespace cinta::train {

inline const std::string checkpoint_prefix = "checkpoint-";  ///< checkpoint-500
inline const std::string manifest_name = "manifest.json";
inline const std::string seed_prefix = "seed-";  ///< seed-1: the directory of a further run, with another seed
inline const std::string metrics_name = "metrics.jsonl";
inline const std::string events_prefix = "events.out.tfevents.";

/// A CRC-32 as the manifest spells it.
inline std::string hex_of(uint32_t number) {
  std::string out(8, '0');
  for (int i = 7; i >= 0; --i, number >>= 4) out[size_t(i)] = "0123456789abcdef"[number & 15];
  return out;
}

}  // namespace cinta::train
