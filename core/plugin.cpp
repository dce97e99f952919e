// Loading the shared library of a backend, and asking it what it is before it is let in.
#include "cinta/core/plugin.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace cinta {
namespace {

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

/// Bytes that a library's segments want of its file; 0 where that is no library, which the loader says better.
uint64_t wanted_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto read = [&](auto& record) { return !!file.read(reinterpret_cast<char*>(&record), sizeof record); };
  // Another machine's library, whose numbers are of another size or order, is for the loader to refuse, too.
  constexpr uint8_t own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32,
                    own_order = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  ElfW(Ehdr) header;
  if (!read(header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  if (header.e_ident[EI_CLASS] != own_class || header.e_ident[EI_DATA] != own_order) return 0;
  uint64_t wanted = header.e_phoff + uint64_t{header.e_phnum} * sizeof(ElfW(Phdr));
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  ElfW(Phdr) segment;
  for (int i = 0; i < header.e_phnum && read(segment); ++i)
    if (segment.p_type == PT_LOAD) wanted = std::max<uint64_t>(wanted, segment.p_offset + segment.p_filesz);
  return wanted;
}

}  // namespace

Device load_backend(const std::string& path, Where where) {
  // A bare name would be looked for in the system's folders, not here.
  const std::string file = path.find('/') == path.npos ? "./" + path : path;
  std::error_code none;
  const auto kind = std::filesystem::status(file, none).type();
  require<FileError>(kind != std::filesystem::file_type::fifo, "load_backend", where, "cannot load ", path,
                     ": is a pipe");
  // The loader maps what is not there, and who reads that is killed.
  const uint64_t wanted = kind == std::filesystem::file_type::regular ? wanted_bytes(file) : 0;
  require<FileError>(wanted == 0 || wanted <= std::filesystem::file_size(file), "load_backend", where, "cannot load ",
                     path, ": the file is truncated, it has fewer than ", wanted, " bytes");
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw FileError(located("load_backend", join("cannot load ", path, ": ", dlerror()), where));
  // Never closed: its kernels and its runtime stay in the tables as long as the process, also those that its
  // initialisers have put there before it was asked anything.
  const auto check = [&](bool ok, const auto&... parts) {
    require<FileError>(ok, "load_backend", where, path, ": ", parts...);
  };
  const auto version = find<decltype(cinta_backend_abi_version)>(library, "cinta_backend_abi_version");
  check(version, "exports no cinta_backend_abi_version, so it is not a backend");
  const uint32_t found = version();
  check(found == backend_abi_version, "built against version ", found, " of the backend interface, this library has ",
        "version ", backend_abi_version, "; build it anew");
  const auto enter = find<decltype(cinta_backend_register)>(library, "cinta_backend_register");
  check(enter, "exports no cinta_backend_register");
  return enter();
}

}  // namespace cinta
