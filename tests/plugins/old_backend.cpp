// A backend built against another version of the interface. It must not be let in.
#include <cstdlib>

#include "cinta/core/plugin.h"

extern "C" uint32_t cinta_backend_abi_version() { return cinta::backend_abi_version + 41; }
extern "C" cinta::Device cinta_backend_register() { std::abort(); }
