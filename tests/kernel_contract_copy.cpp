// Contracts of the rows that move elements: copy, fill, where, accumulate.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/core/tensor.h"
#include "contract/contract.h"

using namespace cinta;
using namespace cinta::contract;

namespace {

constexpr Dtype all_types[] = {Dtype::f64,    Dtype::f32,        Dtype::f16,        Dtype::bf16, Dtype::f8e4m3,
                               Dtype::f8e5m2, Dtype::f8e4m3fnuz, Dtype::f8e5m2fnuz, Dtype::i8,   Dtype::i32,
                               Dtype::i64,    Dtype::u8,         Dtype::boolean};

void try_copy(const Shape& shape, Dtype from, Dtype to, Layout in, Layout out, const Values& x) {
  Trial trial(kernels::copy, join(from, " to ", to, " ", shape, " layouts ", int(in), " ", int(out)));
  trial.accuracy.exact = true;
  const Handle source = trial.input(shape, from, x, in), result = trial.output(shape, to, out);
  trial.run([&](const Call& c) { kernels::copy(c.device, c(result), c(source)); });
}

void copy_contract() {
  for (Dtype from : all_types)
    for (Dtype to : all_types) {
      const bool positive = from == Dtype::u8 || to == Dtype::u8;
      try_copy({5, 67}, from, to, Layout::dense, Layout::dense, uniform(335, positive ? 0 : -100, 100));
      try_copy({3, 9}, from, to, Layout::transposed, Layout::padded, uniform(27, positive ? 0 : -2, 2));
      if (is_floating(from) && is_floating(to)) try_copy({57}, from, to, Layout::dense, Layout::dense, special(57));
    }
  for (Dtype dtype : trained_types) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{257}, Shape{3, 0}, Shape{2, 3, 5, 7}})
      try_copy(shape, dtype, Dtype::f32, Layout::dense, Layout::dense, uniform(shape, -3, 3));
    try_copy({70, 300}, dtype, dtype, Layout::transposed, Layout::dense, uniform(21000, -3, 3));
    try_copy({2, 33, 65}, dtype, dtype, Layout::transposed, Layout::padded, uniform(4290, -3, 3));
    for (Layout in : any_layout)
      for (Layout out : any_layout) try_copy({2, 5, 37}, Dtype::f32, dtype, in, out, uniform(370, -3, 3));
    for (Layout in : {Layout::repeated_rows, Layout::repeated_last})
      try_copy({5, 37}, dtype, dtype, in, Layout::dense, uniform(185, -3, 3));
  }
  // Ties go to even, and a value just beside one does not: rounding happens once, from the source's type.
  Values ties;
  for (double base : {1.0, 1.0078125, 1.0009765625, 3.0, 0.001953125})
    for (double step : {0x1p-8, 0x1p-11, 0x1p-4, 0x1p-3, 0x1p-25})
      for (double nudge : {0.0, 0x1p-20, -0x1p-20, 0x1p-40, -0x1p-40})
        for (double sign : {1.0, -1.0}) ties.push_back(sign * base * (1 + step) * (1 + nudge));
  const auto count = static_cast<int64_t>(ties.size());
  for (Dtype to : all_types)
    for (Dtype from : {Dtype::f32, Dtype::f64})
      if (is_floating(to)) try_copy({count}, from, to, Layout::dense, Layout::dense, ties);
}

void fill_contract() {
  for (Dtype dtype : all_types)
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{1000}, Shape{3, 7}})
      for (Layout layout : {Layout::dense, Layout::strided, Layout::transposed, Layout::padded}) {
        Trial trial(kernels::fill, join(dtype, shape, " layout ", int(layout)));
        trial.accuracy.exact = true;
        const Handle y = trial.output(shape, dtype, layout);
        trial.run([&](const Call& c) { kernels::fill(c.device, c(y), 1.7); });
      }
}

void where_contract() {
  for (Dtype dtype :
       {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f64, Dtype::i64, Dtype::i32, Dtype::u8, Dtype::boolean})
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{63}, Shape{3, 37}})
      for (Layout layout : any_layout) {
        Trial trial(kernels::where, join(dtype, shape, " layout ", int(layout)));
        trial.accuracy.exact = true;
        const int64_t n = shape.numel();
        const Handle condition = trial.input(shape, Dtype::boolean, whole(n, 0, 2, 3), layout);
        const Handle left = trial.input(shape, dtype, is_floating(dtype) ? special(n) : whole(n, 0, 50), layout);
        const Handle right = trial.input(shape, dtype, whole(n, 50, 100), Layout::dense);
        const Handle y = trial.output(shape, dtype, layout);
        trial.run([&](const Call& c) { kernels::where(c.device, c(y), c(condition), c(left), c(right)); });
      }
  Trial trial(kernels::where, "broadcast operands");
  trial.accuracy.exact = true;
  const Handle condition = trial.input({4, 33}, Dtype::boolean, whole(132, 0, 2), Layout::repeated_rows);
  const Handle left = trial.input({4, 33}, Dtype::f32, uniform(132, -1, 1), Layout::repeated_last);
  const Handle right = trial.input({4, 33}, Dtype::f32, uniform(132, -1, 1, 2));
  const Handle y = trial.output({4, 33}, Dtype::f32);
  trial.run([&](const Call& c) { kernels::where(c.device, c(y), c(condition), c(left), c(right)); });
}

void accumulate_contract() {
  for (Dtype to : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f64})
    for (Dtype from : trained_types)
      for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{7}, Shape{1000}, Shape{3, 37}})
        for (Layout layout : any_layout) {
          Trial trial(kernels::accumulate, join(from, " into ", to, " ", shape, " layout ", int(layout)));
          const Handle y = trial.both(shape, to, uniform(shape, -3, 3), layout);
          const Handle x = trial.input(shape, from, uniform(shape, -3, 3, 2), Layout::shifted);
          trial.run([&](const Call& c) { kernels::accumulate(c.device, c(y), c(x)); });
        }
}

const Contract copy_here{{&kernels::copy}, copy_contract};
void arange_contract() {
  for (int64_t count : {0, 1, 7, 1000})
    for (Layout layout : {Layout::dense, Layout::shifted}) {
      Trial trial(kernels::arange, join(count, " layout ", int(layout)));
      const Handle y = trial.output({count}, Dtype::i64, layout);
      trial.run([&](const Call& c) { kernels::arange(c.device, c(y), -3, 128); });
    }
}

const Contract arange_here{{&kernels::arange}, arange_contract};
const Contract fill_here{{&kernels::fill}, fill_contract};
const Contract where_here{{&kernels::where}, where_contract};
const Contract accumulate_here{{&kernels::accumulate}, accumulate_contract};

}  // namespace

TEST_CASE("contracts of the rows that move elements", "[kernel_contract]") { check_contracts(); }

TEST_CASE("copies between integers are exact to the last bit", "[kernel_contract]") {
  const std::vector<int64_t> numbers{INT64_MAX, INT64_MIN, INT64_MAX - 1, -1, 0, (int64_t{1} << 53) + 1};
  for (Device device : {cpu, reference}) {
    if (!kernels::copy.has(device)) continue;
    const Tensor x = from_values(numbers, {6}, device), y = empty({6}, Dtype::i64, device);
    kernels::copy(device, y, x);
    CHECK(to_vector<int64_t>(y) == numbers);
  }
}
