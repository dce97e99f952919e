// Loading the shared library of a backend, and asking it what it is before it is let in.
#include "cinta/core/plugin.h"

#include <dlfcn.h>

namespace cinta {
namespace {

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

Device load_backend(const std::string& path, Where where) {
  // A bare name would be looked for in the system's folders, not here.
  const std::string file = path.find('/') == path.npos ? "./" + path : path;
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw FileError(located("load_backend", join("cannot load ", path, ": ", dlerror()), where));
  // Never closed once it was let in: its kernels and its runtime stay in the tables as long as the process.
  auto refuse = [&](const std::string& reason) {
    dlclose(library);
    throw FileError(located("load_backend", path + reason, where));
  };
  const auto version = find<decltype(cinta_backend_abi_version)>(library, "cinta_backend_abi_version");
  if (!version) refuse(": exports no cinta_backend_abi_version, so it is not a backend");
  if (const uint32_t found = version(); found != backend_abi_version)
    refuse(join(": built against version ", found, " of the backend interface, this library has version ",
                backend_abi_version, "; build it anew"));
  const auto enter = find<decltype(cinta_backend_register)>(library, "cinta_backend_register");
  if (!enter) refuse(": exports no cinta_backend_register");
  return enter();
}

}  // namespace cinta
