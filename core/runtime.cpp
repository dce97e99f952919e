// The table of backends: names and runtimes by column.
#include "cinta/core/runtime.h"

#include <array>
#include <charconv>

#include "cinta/core/error.h"

namespace cinta {
namespace {

struct Column {
  std::string name;
  Runtime* runtime = nullptr;
};

std::array<Column, max_backends>& columns() {
  static std::array<Column, max_backends> table;
  return table;
}

std::string built_in() {
  std::string out;
  for (const Column& column : columns())
    if (column.runtime) out += (out.empty() ? "" : ", ") + column.name;
  return out;
}

}  // namespace

RegisterRuntime::RegisterRuntime(Device device, std::string_view name, Runtime& runtime) {
  columns()[device.backend] = {std::string(name), &runtime};
}

Device claim_backend(std::string_view name, Runtime& runtime) {
  constexpr uint8_t first_outside = 4;
  // parse_device could not give others back: "npu:1" is device 1 of "npu".
  require<DeviceError>(!name.empty() && name.find(':') == name.npos && name != "host", "backend", Where(),
                       "a name without ':' that is not 'host', given '", name, "'");
  for (uint8_t i = 0; i < max_backends; ++i) {
    const Column& column = columns()[i];
    if (!column.runtime || column.name != name) continue;
    require<DeviceError>(column.runtime == &runtime, "backend", Where(), "the name '", name, "' is taken");
    return Device{i};
  }
  for (uint8_t i = first_outside; i < max_backends; ++i) {
    if (columns()[i].runtime) continue;
    columns()[i] = {std::string(name), &runtime};
    return Device{i};
  }
  throw DeviceError("[backend] no free column for '" + std::string(name) + "'; taken: " + built_in());
}

Runtime& runtime_of(Device device) {
  if (device.backend >= max_backends || !columns()[device.backend].runtime)
    throw DeviceError("[device] backend " + std::to_string(device.backend) + " is not built; available: " + built_in());
  return *columns()[device.backend].runtime;
}

Rehearsal::Rehearsal(Device device) : runtime_(runtime_of(device)) { runtime_.rehearse(true); }
Rehearsal::~Rehearsal() { runtime_.rehearse(false); }

std::string name_of(Device device) {
  if (device == host) return "host";
  const bool known = device.backend < max_backends && columns()[device.backend].runtime;
  std::string out = known ? columns()[device.backend].name : "backend" + std::to_string(device.backend);
  if (device.index) out += ":" + std::to_string(device.index);
  return out;
}

Device parse_device(std::string_view name) {
  if (name == "host") return host;
  const size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  uint8_t index = 0;
  bool number = true;
  if (colon != name.npos) {
    const std::string_view digits = name.substr(colon + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    number = error == std::errc{} && end == digits.data() + digits.size();
  }
  for (uint8_t i = 0; number && i < max_backends; ++i)
    if (columns()[i].runtime && columns()[i].name == kind) return Device{i, index};
  throw DeviceError("[device] '" + std::string(name) + "' is not built; available: " + built_in());
}

void describe(std::string& out, Device device) { out += name_of(device); }

}  // namespace cinta
