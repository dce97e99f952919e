// Contracts of the elementwise rows.
#include <catch2/catch.hpp>

#include "contract/unary.h"

using namespace cinta;
using namespace cinta::contract;

namespace {

// Each floor is the size of what cancels: near 0 (tanh, softplus far left) or far to the left (the two gelus), the sum
// of two numbers of about that size is what the formula says.
const UnaryTrial unary_trials[] = {
    {&kernels::affine, -3, 3, {2.5, -0.75}},
    {&kernels::divide_by, -3, 3, {0.7}},
    {&kernels::divide_into, 0.1, 3, {-2.5}},
    {&kernels::exp, -20, 20},
    {&kernels::log, 1e-3, 50},
    {&kernels::sqrt, 0, 50},
    {&kernels::rsqrt, 1e-3, 50},
    {&kernels::pow, 0.1, 4, {2.5}},
    {&kernels::pow, -4, 4, {3}},
    {&kernels::pow, -4, 4, {2}},
    {&kernels::pow, 0.1, 4, {-1}},
    {&kernels::power_of, -3, 3, {0.7}},
    {&kernels::power_of, 0, 3, {0}},
    {&kernels::abs, -3, 3},
    {&kernels::clamp, -3, 3, {-1, 0.5}},
    {&kernels::erf, -4, 4, {}, 1},
    {&kernels::relu, -3, 3},
    {&kernels::leaky_relu, -3, 3, {0.01}},
    {&kernels::gelu, -8, 8, {}, 8, false},
    {&kernels::gelu_tanh, -8, 8, {}, 8, false},
    {&kernels::silu, -20, 20, {}, 0, false},
    {&kernels::tanh, -8, 8, {}, 1},
    {&kernels::sigmoid, -20, 20},
    {&kernels::softplus, -30, 30, {}, 1},
    {&kernels::elu, -8, 3, {1.5}, 1.5},
};

void unary_contracts() {
  for (const UnaryTrial& unary : unary_trials) try_everywhere(unary);
}

std::vector<const KernelRow*> unary_rows() {
  std::vector<const KernelRow*> rows;
  for (const UnaryTrial& unary : unary_trials) {
    rows.push_back(&unary.row->forward);
    rows.push_back(&unary.row->backward);
  }
  return rows;
}
const Contract unary_here{unary_rows(), unary_contracts};

kernels::Binary* const arithmetic[] = {&kernels::add, &kernels::subtract, &kernels::multiply, &kernels::divide,
                                       &kernels::power};
kernels::Binary* const comparisons[] = {&kernels::equal,      &kernels::not_equal, &kernels::less,
                                        &kernels::less_equal, &kernels::greater,   &kernels::greater_equal};

void try_binary(kernels::Binary& row, const Shape& shape, Dtype in, Dtype out, const Values& left, const Values& right,
                Layout left_layout, Layout right_layout, Layout out_layout) {
  Trial trial(row, join(in, shape, " layouts ", int(left_layout), " ", int(right_layout), " ", int(out_layout)));
  trial.accuracy.exact = out == Dtype::boolean;
  const Handle a = trial.input(shape, in, left, left_layout), b = trial.input(shape, in, right, right_layout);
  const Handle y = trial.output(shape, out, out_layout);
  trial.run([&](const Call& c) { row(c.device, c(y), c(a), c(b)); });
}

/// A narrow operand beside a wide one, in either place.
void try_mixed(kernels::Binary& row, Dtype narrow) {
  for (bool left : {false, true}) {
    Trial trial(row, join(narrow, left ? " left" : " right"));
    const Shape shape{3, 35};
    const Handle a = trial.input(shape, left ? narrow : Dtype::f32, uniform(shape, -3, 3, 1)),
                 b = trial.input(shape, left ? Dtype::f32 : narrow, uniform(shape, -3, 3, 2));
    const Handle y = trial.output(shape, Dtype::f32);
    trial.run([&](const Call& c) { row(c.device, c(y), c(a), c(b)); });
  }
}

void try_binary_everywhere(kernels::Binary& row, Dtype in, Dtype out, bool whole_numbers) {
  const auto numbers = [&](const Shape& shape, uint64_t seed) {
    return whole_numbers ? whole(shape.numel(), -3, 4, seed) : uniform(shape, -3, 3, seed);
  };
  for (const Shape& shape : elementwise_shapes)
    try_binary(row, shape, in, out, numbers(shape, 1), numbers(shape, 2), Layout::dense, Layout::dense, Layout::dense);
  const Shape shape{2, 3, 35};
  for (Layout left : any_layout)
    for (Layout right : {Layout::dense, Layout::transposed, Layout::repeated_rows, Layout::repeated_last}) {
      try_binary(row, shape, in, out, numbers(shape, 1), numbers(shape, 2), left, right, Layout::dense);
      try_binary(row, shape, in, out, numbers(shape, 1), numbers(shape, 2), right, left, left);
    }
}

void binary_contracts() {
  for (Dtype narrow : {Dtype::bf16, Dtype::f16})
    for (kernels::Binary* row : {&kernels::add, &kernels::subtract, &kernels::multiply}) try_mixed(*row, narrow);
  for (Dtype dtype : trained_types) {
    for (kernels::Binary* row : arithmetic) {
      try_binary_everywhere(*row, dtype, dtype, false);
      Values other = special(60);
      std::rotate(other.begin(), other.begin() + 7, other.end());
      try_binary(*row, {60}, dtype, dtype, special(60), other, Layout::dense, Layout::dense, Layout::dense);
    }
    for (kernels::Binary* row : comparisons) {
      try_binary_everywhere(*row, dtype, Dtype::boolean, true);
      Values other = special(60);
      std::rotate(other.begin(), other.begin() + 7, other.end());
      for (const Values& right : {special(60), other})
        try_binary(*row, {60}, dtype, Dtype::boolean, special(60), right, Layout::dense, Layout::dense, Layout::dense);
    }
  }
  for (kernels::Binary* row : comparisons)
    for (Dtype dtype : {Dtype::i32, Dtype::i64, Dtype::u8}) {
      const Values left = whole(70, 0, 4, 1), right = whole(70, 0, 4, 2);
      try_binary(*row, {70}, dtype, Dtype::boolean, left, right, Layout::dense, Layout::strided, Layout::dense);
    }
  Trial trial(kernels::equal, "neighbours below 2^53");
  trial.accuracy.exact = true;
  const double big = 9007199254740991.0;
  const Handle a = trial.input({3}, Dtype::i64, {big, big, -big}),
               b = trial.input({3}, Dtype::i64, {big - 1, big, 1 - big});
  const Handle y = trial.output({3}, Dtype::boolean);
  trial.run([&](const Call& c) { kernels::equal(c.device, c(y), c(a), c(b)); });
}
const Contract binary_here{
    {&kernels::add, &kernels::subtract, &kernels::multiply, &kernels::divide, &kernels::power, &kernels::equal,
     &kernels::not_equal, &kernels::less, &kernels::less_equal, &kernels::greater, &kernels::greater_equal},
    binary_contracts};

}  // namespace

TEST_CASE("contracts of the elementwise rows", "[kernel_contract]") { check_contracts(); }
