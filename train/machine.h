// The machine in words, for reports.
#pragma once
#include <cstdint>
#include <string>

namespace cinta::train {

/// Of this machine, also where a container may use less; 0 where the system does not know.
int64_t memory_bytes();

/// "AMD EPYC 7B13, avx2, 2 threads on 2 processors, 23.5 GiB"; what is not known is left out.
std::string machine_text();
/// "GCC 12.2.0, oneDNN 2.6.3": what this library was compiled with, and the matrix library that it found.
std::string build_text();

}  // namespace cinta::train
