// A device: a column of the kernel table and which machine of that kind.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cinta {

/// Columns of the kernel table. Backends from outside claim a free one by name (core/runtime.h).
inline constexpr int max_backends = 8;

struct Device {
  uint8_t backend = 0;
  uint8_t index = 0;
  bool operator==(const Device&) const = default;
};

inline constexpr Device cpu{0}, reference{1}, meta{2}, cuda{3};
/// A second, separately counted memory of the CPU; stands for the host where device and host are one.
inline constexpr Device host{0, 1};

/// "cpu", "cuda:1", or the name a backend claimed.
std::string name_of(Device device);
/// The device called `name`; throws DeviceError listing what is built in.
Device parse_device(std::string_view name);
void describe(std::string& out, Device device);

}  // namespace cinta
