// Backends from outside: a shared library that claims a free column and fills it, loaded at run time. A backend file
// includes this header, defines the two functions below, and links against the library; no file of it changes.
#pragma once
#include <cstdint>
#include <string>

#include "cinta/core/device.h"
#include "cinta/core/error.h"

namespace cinta {

/// What a backend is built against: Runtime, View, Kernel, the rows' signatures and what their operands hold. Raised by
/// every change of one of them.
inline constexpr uint32_t backend_abi_version = 14;

/// Loads the backend in the shared library at `path` and returns its device; loading one again gives the same device.
/// Throws FileError when the file cannot be loaded, is no backend or was built against another version (nothing of it
/// but its initialisers has been called then; it stays mapped, and is not read again in this process), DeviceError when
/// its name or the last free column is taken.
Device load_backend(const std::string& path, Where where = Where::current());

}  // namespace cinta

/// What a backend exports. The first returns cinta::backend_abi_version; the second claims a column
/// (cinta::claim_backend), installs the kernels it has and returns the device. It may be called more than once.
extern "C" uint32_t cinta_backend_abi_version();
extern "C" cinta::Device cinta_backend_register();
