// What every unary row of kernels/elementwise.h is tried on.
#pragma once
#include "cinta/backends/kernels/elementwise.h"
#include "contract.h"

namespace cinta::contract {

/// What a unary row is tried on: numbers from [low, high), the scalars, and the floor of its tolerance.
struct UnaryTrial {
  kernels::UnaryRow* row;
  double low, high;
  kernels::Scalars scalars = {};
  double floor = 0;
  bool specials = true;  ///< special values too: off where the formula itself makes NaN of an infinity
};

inline const Shape elementwise_shapes[] = {{},    {0},    {1},       {3},    {7},        {17},      {63},
                                           {257}, {1000}, {3, 0, 5}, {5, 7}, {2, 3, 17}, {4, 1, 33}};

inline void try_unary(const UnaryTrial& unary, const Shape& shape, Dtype dtype, Layout in, Layout out,
                      const Values& x) {
  Trial trial(unary.row->forward, join(dtype, shape, " layouts ", int(in), " ", int(out)));
  trial.accuracy.floor = unary.floor;
  const Handle source = trial.input(shape, dtype, x, in), result = trial.output(shape, dtype, out);
  trial.run([&](const Call& c) { unary.row->forward(c.device, c(result), c(source), unary.scalars); });
}

inline void try_unary_backward(const UnaryTrial& unary, const Shape& shape, Dtype dtype, Layout in, Layout out) {
  Values saved = uniform(shape, unary.low, unary.high);
  if (unary.row->reads == kernels::Reads::output) {
    View view{saved.data(), shape, contiguous_strides(shape), Dtype::f64, true};
    unary.row->forward(reference, view, view, unary.scalars);
  }
  Trial trial(unary.row->backward, join(dtype, shape, " layouts ", int(in), " ", int(out)));
  trial.accuracy.floor = unary.floor;
  const Handle read = trial.input(shape, dtype, saved, in);
  const Handle dy = trial.input(shape, dtype, uniform(shape, -2, 2, 5), Layout::dense);
  const Handle dx = trial.output(shape, dtype, out);
  trial.run([&](const Call& c) { unary.row->backward(c.device, c(dx), c(dy), c(read), unary.scalars); });
}

/// Every size, type and layout.
inline void try_everywhere(const UnaryTrial& unary) {
  for (Dtype dtype : trained_types) {
    for (const Shape& shape : elementwise_shapes) {
      try_unary(unary, shape, dtype, Layout::dense, Layout::dense, uniform(shape, unary.low, unary.high));
      try_unary_backward(unary, shape, dtype, Layout::shifted, Layout::dense);
    }
    for (Layout layout : any_layout) {
      try_unary(unary, {3, 35}, dtype, layout, Layout::dense, uniform(105, unary.low, unary.high));
      try_unary(unary, {3, 35}, dtype, Layout::dense, layout, uniform(105, unary.low, unary.high));
      try_unary_backward(unary, {3, 35}, dtype, layout, layout);
    }
    for (Layout layout : {Layout::repeated_rows, Layout::repeated_last}) {
      try_unary(unary, {3, 35}, dtype, layout, Layout::dense, uniform(105, unary.low, unary.high));
      try_unary_backward(unary, {3, 35}, dtype, layout, Layout::padded);
    }
    if (unary.specials) try_unary(unary, {57}, dtype, Layout::dense, Layout::dense, special(57));
  }
}

}  // namespace cinta::contract
