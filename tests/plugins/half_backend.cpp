// A library that says it is a backend and brings none.
#include "cinta/core/plugin.h"

extern "C" uint32_t cinta_backend_abi_version() { return cinta::backend_abi_version; }
