// Memory is measured by plain loops on threads of their own, and by the library's simplest row, which has the machine's
// widest instructions: an Emerald Rapids changes arrays in place at 38 GB/s by 16 bytes at a time, at 50 by 64.
#include "tools/machine_limits.h"

#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/backends/threads.h"
#include "cinta/ops/shape.h"
#include "cinta/train/timing.h"

namespace cinta::tools {
namespace {

constexpr double least_seconds = 0.06;
constexpr int64_t least_array_bytes = int64_t{64} << 20;  ///< to be gone through in one turn

double product_rate(Dtype dtype) {
  constexpr int64_t size = 1024;
  const Shape shape{size, size};
  const Tensor a = full(shape, 0.5, dtype), b = full(shape, 0.5, dtype), y = empty(shape, dtype);
  const auto times = train::time_calls([&] { kernels::matmul(cpu, y, a, b, 1, 0); }, least_seconds);
  return 2.0 * size * size * size / times.best;
}

/// A part of three arrays, and what a thread does with it.
struct Part {
  float *a, *b, *c;
  int64_t count;
};
float copy(const Part& part) {
  std::memcpy(part.a, part.b, static_cast<size_t>(part.count) * sizeof(float));
  return part.a[0];
}
float add(const Part& part) {
  for (int64_t i = 0; i < part.count; ++i) part.a[i] = part.b[i] + 2 * part.c[i];
  return part.a[0];
}

struct Pattern {
  float (*work)(const Part& part);
  int arrays;  ///< that it reads, and that it writes
};
constexpr Pattern patterns[] = {{copy, 2}, {add, 3}};

/// Bytes a second of `pattern` by as many threads as rows use.
double memory_rate(const std::vector<Part>& parts, const Pattern& pattern, double array_bytes) {
  // Arrays in the cache are gone through so often that starting the threads is not measured.
  const int turns = static_cast<int>(std::max(1.0, static_cast<double>(least_array_bytes) / array_bytes));
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
  return array_bytes * pattern.arrays * turns / times.best;
}

/// Bytes a second of a change in place.
double in_place_rate(std::vector<float>& a) {
  const auto count = static_cast<int64_t>(a.size());
  const View all{a.data(), {count}, {1}, Dtype::f32, true};
  const auto times =
      train::time_calls([&] { kernels::affine.forward(cpu, all, all, {.a = -1, .b = 0}); }, least_seconds);
  return 2.0 * static_cast<double>(count) * sizeof(float) / times.best;
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
  const int64_t memory = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  return std::min(std::max(2 * largest, least_array_bytes), memory / 16);
}

MachineLimits measure_limits(int64_t array_bytes, MachineLimits limits) {
  limits.flops = std::max(limits.flops, product_rate(limits.products));
  const int64_t count = array_bytes / static_cast<int64_t>(sizeof(float)), team = threads();
  std::vector<float> a(static_cast<size_t>(count)), b = a, c = a;
  std::vector<Part> parts;
  for (int64_t i = 0; i < team; ++i) {
    const int64_t first = i * count / team;
    parts.push_back({a.data() + first, b.data() + first, c.data() + first, (i + 1) * count / team - first});
  }
  limits.bytes = std::max(limits.bytes, in_place_rate(a));
  for (const Pattern& pattern : patterns)
    limits.bytes = std::max(limits.bytes, memory_rate(parts, pattern, static_cast<double>(array_bytes)));
  return limits;
}

}  // namespace cinta::tools
