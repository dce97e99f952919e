// What the CPU backend stands on, in words.
#pragma once
#include <string>

namespace cinta {

/// "oneDNN 2.6.3": the library of matrix products that was found at run time; "" where none is built in.
std::string product_library();

/// "avx512": the instructions that its kernels were chosen for (backends/cpu/isa.h).
std::string instruction_set();

}  // namespace cinta
