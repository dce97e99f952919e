// How many threads a kernel of the CPU backend may use. Results never depend on it.
#pragma once

namespace cinta {

/// The size of the team for kernels called from this thread; at first what OpenMP was told (OMP_NUM_THREADS), without
/// OpenMP the number of processors.
int threads();
/// Sets it for kernels called from this thread, and ends threads that worked for it before. Throws ValueError below 1.
void set_threads(int count);

}  // namespace cinta
