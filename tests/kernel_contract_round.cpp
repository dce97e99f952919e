// Contract of the row that rounds to a narrow format.
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/round.h"
#include "cinta/core/format_facts.h"
#include "cinta/ops/shape.h"
#include "contract/contract.h"

using namespace cinta;
using namespace cinta::contract;

namespace {

constexpr Dtype narrow_types[] = {Dtype::bf16,   Dtype::f16,        Dtype::f8e4m3,
                                  Dtype::f8e5m2, Dtype::f8e4m3fnuz, Dtype::f8e5m2fnuz};

/// Where `x` may become an infinity of a format of 8 bits: the engine compares what copy makes of the exact result, and
/// copy saturates. tests/ops_round.cpp holds those bit by bit.
std::vector<bool> infinite(const Values& x, Dtype to, Overflow overflow) {
  std::vector<bool> open(x.size(), false);
  const double largest = std::ranges::find(float_formats, name_of(to), &FormatFacts::name)->largest;
  for (size_t i = 0; i < x.size(); ++i)
    open[i] = size_of(to) == 1 && overflow == Overflow::special && std::abs(x[i]) > largest;
  return open;
}

void try_round(const Shape& shape, Dtype from, Dtype to, Layout in, Layout out, const Values& x) {
  for (Overflow overflow : {Overflow::saturate, Overflow::special})
    for (bool stochastic : {false, true}) {
      Trial trial(kernels::round_to,
                  join(from, " to ", to, " ", shape, " layouts ", int(in), " ", int(out),
                       overflow == Overflow::saturate ? " saturating" : "", stochastic ? " stochastic" : ""));
      trial.accuracy.exact = true;
      const Handle source = trial.input(shape, from, x, in), result = trial.output(shape, to, out);
      const Handle state = stochastic ? trial.input({3}, Dtype::i64, {123456789012345, 7, 11}) : Handle{};
      trial.leave_open(result, infinite(x, to, overflow));
      trial.run([&](const Call& c) {
        const kernels::RoundTo how{overflow, c(state), 0xabcdef12u, 35};
        if (c(result).dtype == to) return kernels::round_to(c.device, c(result), c(source), how);
        const Tensor codes = empty(shape, to, c.device);  // the engine's exact results are f64
        kernels::round_to(c.device, codes, c(source), how);
        kernels::copy(c.device, c(result), codes);
      });
    }
}

void round_contract() {
  for (Dtype to : narrow_types) {
    for (Dtype from : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f8e5m2}) {
      try_round({5, 67}, from, to, Layout::dense, Layout::dense, uniform(335, -3, 3));
      try_round({57}, from, to, Layout::dense, Layout::dense, special(57));
    }
    for (Layout in : any_layout)
      for (Layout out : any_layout) try_round({2, 5, 37}, Dtype::f32, to, in, out, uniform(370, -500, 500));
    for (Layout in : {Layout::repeated_rows, Layout::repeated_last})
      try_round({5, 37}, Dtype::f32, to, in, Layout::dense, uniform(185, -3, 3));
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{3, 0}, Shape{513, 1}, Shape{3, 2731}})
      try_round(shape, Dtype::f32, to, Layout::dense, Layout::dense, uniform(shape, -3, 3));
  }
}

const Contract round_here{{&kernels::round_to}, round_contract};

}  // namespace

TEST_CASE("contract of rounding to a narrow format", "[kernel_contract]") { check_contracts(); }

TEST_CASE("the row refuses codes that are no narrow floats", "[kernel_contract]") {
  const Tensor x = full({2}, 1), wide = full({2}, 1), whole = full({2}, 1, Dtype::u8);
  for (const Tensor& y : {wide, whole})
    for (Device device : {cpu, reference}) CHECK_THROWS_AS(kernels::round_to(device, y, x, {}), DtypeError);
}
