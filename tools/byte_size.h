// Sizes in bytes as people write them.
#pragma once
#include <cstdint>
#include <string>

namespace cinta::tools {

/// "100MB": bytes, in powers of 1000, or of 1024 with an i in the unit. Throws ValueError naming `option`.
uint64_t byte_size(const char* option, const std::string& text);

}  // namespace cinta::tools
