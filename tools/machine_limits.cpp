// Threads of its own for the memory, so that nothing of the library's is measured with it.
#include "tools/machine_limits.h"

#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "cinta/backends/kernels/matmul.h"
#include "cinta/backends/threads.h"
#include "cinta/ops/shape.h"
#include "cinta/train/machine.h"
#include "cinta/train/timing.h"

namespace cinta::tools {
namespace {

constexpr double least_seconds = 0.06;

double product_rate(Dtype dtype) {
  constexpr int64_t size = 1024;
  const Shape shape{size, size};
  const Tensor a = full(shape, 0.5, dtype), b = full(shape, 0.5, dtype), y = empty(shape, dtype);
  const auto times = train::time_calls([&] { kernels::matmul(cpu, y, a, b, 1, 0); }, least_seconds);
  return 2.0 * size * size * size / times.best;
}

/// A part of an array, of which others lie at equal distances, and what a thread does with it.
struct Part {
  float* data;
  int64_t count, distance;
  float* of(int64_t array) const { return data + array * distance; }
};
float copy(const Part& part) {
  std::memcpy(part.of(0), part.of(1), static_cast<size_t>(part.count) * sizeof(float));
  return part.data[0];
}
float add(const Part& part) {
  float *sum = part.of(0), *one = part.of(1), *other = part.of(2);
  for (int64_t i = 0; i < part.count; ++i) sum[i] = one[i] + 2 * other[i];
  return part.data[0];
}

#ifdef __x86_64__
/// 64 bytes at a time: an Emerald Rapids changes memory in place at 38 GB/s by 16, at 50 by 64.
[[gnu::target("avx512f")]] float negate_by_64_bytes(const Part& part) {
  typedef float Wide __attribute__((vector_size(64), aligned(4)));
  constexpr int64_t width = sizeof(Wide) / sizeof(float);
  for (int64_t i = 0; i + width <= part.count; i += width) {
    Wide& some = *reinterpret_cast<Wide*>(part.data + i);
    some = -some;
  }
  return part.data[0];
}
#endif
float negate(const Part& part) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return negate_by_64_bytes(part);
#endif
  for (int64_t i = 0; i < part.count; ++i) part.data[i] = -part.data[i];
  return part.data[0];
}

struct Pattern {
  float (*work)(const Part& part);
  int arrays;
  int passes;  ///< of an array's bytes: each that it reads, and that it writes
};
constexpr Pattern patterns[] = {{copy, 2, 2}, {add, 3, 3}, {negate, 1, 2}};

/// Bytes a second of `pattern` on arrays in `memory`, by as many threads as rows use.
double memory_rate(std::vector<float>& memory, const Pattern& pattern) {
  const int64_t count = static_cast<int64_t>(memory.size()) / pattern.arrays, all = threads();
  std::vector<Part> parts;
  for (int64_t i = 0; i < all; ++i) {
    const int64_t first = i * count / all;
    parts.push_back({memory.data() + first, (i + 1) * count / all - first, count});
  }
  // Arrays in the cache are gone through so often that starting the threads is not measured.
  const double bytes = static_cast<double>(count) * sizeof(float);
  const int turns = static_cast<int>(std::max(1.0, static_cast<double>(large_bytes) / bytes));
  std::barrier<> gate(static_cast<std::ptrdiff_t>(parts.size()) + 1);
  bool go_on = true;
  std::vector<float> results(parts.size());
  std::vector<std::jthread> team;
  const auto work = [&](size_t i) {
    for (gate.arrive_and_wait(); go_on; gate.arrive_and_wait()) {
      for (int turn = 0; turn < turns; ++turn) results[i] += pattern.work(parts[i]);
      gate.arrive_and_wait();
    }
  };
  try {
    for (size_t i = 0; i < parts.size(); ++i) team.emplace_back(work, i);
  } catch (const std::exception& error) {
    go_on = false;
    (void)gate.arrive(static_cast<std::ptrdiff_t>(parts.size() + 1 - team.size()));
    throw ValueError(join("[bench] memory is measured with ", parts.size(), " more threads; the system starts ",
                          team.size(), ": ", error.what()));
  }
  const auto times = train::time_calls(
      [&] {
        gate.arrive_and_wait();
        gate.arrive_and_wait();
      },
      least_seconds);
  go_on = false;
  gate.arrive_and_wait();
  return bytes * pattern.passes * turns / times.best;
}

}  // namespace

Rate rate_of(const RowWork& work, double seconds, const MachineLimits& limits) {
  const bool product = work.flops > 0;
  const double rate = (product ? work.flops : work.bytes) / seconds;
  return {1e-9 * rate, product ? "GF/s" : "GB/s", rate / (product ? limits.flops : limits.bytes)};
}

int64_t beyond_caches() {
  int64_t largest = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
  largest = std::max(sysconf(_SC_LEVEL2_CACHE_SIZE), sysconf(_SC_LEVEL3_CACHE_SIZE));  // 0: the system does not know
#endif
  const int64_t bytes = std::clamp(2 * largest * threads(), large_bytes, 8 * large_bytes),
                memory = train::memory_bytes();
  return memory > 0 ? std::min(bytes, memory / 16) : bytes;
}

MachineLimits measure_limits(int64_t bytes, MachineLimits limits) {
  limits.flops = std::max(limits.flops, product_rate(limits.products));
  std::vector<float> memory(static_cast<size_t>(bytes) / sizeof(float));
  for (const Pattern& pattern : patterns) limits.bytes = std::max(limits.bytes, memory_rate(memory, pattern));
  return limits;
}

}  // namespace cinta::tools
