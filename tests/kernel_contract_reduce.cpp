// Contracts of the reductions.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "cinta/backends/kernels/reduce.h"
#include "contract/contract.h"

using namespace cinta;
using namespace cinta::contract;

namespace {

struct Reduction {
  Shape from, to;
};
const Reduction reductions[] = {
    {{}, {}},
    {{1}, {1}},
    {{7}, {1}},
    {{1000}, {1}},
    {{5, 7}, {5, 1}},
    {{5, 7}, {1, 7}},
    {{5, 7}, {1, 1}},
    {{5, 7}, {5, 7}},
    {{3, 257}, {3, 1}},
    {{257, 3}, {1, 3}},
    {{63, 100}, {1, 100}},
    {{5, 1300}, {1, 1300}},
    {{5, 4100}, {1, 4100}},
    {{1, 1}, {1, 1}},
    {{2, 3, 17}, {2, 1, 17}},
    {{2, 3, 17}, {1, 3, 1}},
    {{4, 1, 33}, {1, 1, 33}},
    {{2, 3, 4, 5}, {1, 3, 1, 5}},
    {{2, 3, 4, 5}, {2, 1, 4, 1}},
};

int64_t terms(const Reduction& r) { return r.to.numel() ? r.from.numel() / r.to.numel() : 0; }

void try_sum(const Reduction& r, Dtype in, Dtype out, Layout from, Layout to, float beta) {
  Trial trial(kernels::sum, join(in, r.from, " to ", out, r.to, " layouts ", int(from), " ", int(to), " beta ", beta));
  trial.accuracy.length = terms(r);
  const Handle x = trial.input(r.from, in, uniform(r.from, -3, 3), from);
  const Handle y = beta == 0 ? trial.output(r.to, out, to) : trial.both(r.to, out, uniform(r.to, -3, 3, 2), to);
  trial.run([&](const Call& c) { kernels::sum(c.device, c(y), c(x), beta); });
}

void sum_contract() {
  for (Dtype dtype : trained_types)
    for (const Reduction& r : reductions) {
      for (Layout layout : any_layout) try_sum(r, dtype, dtype, layout, Layout::dense, 0);
      try_sum(r, dtype, Dtype::f32, Layout::dense, Layout::strided, 1);
      try_sum(r, dtype, Dtype::f32, Layout::dense, Layout::dense, 0.5f);
      if (r.from.rank() == 2) try_sum(r, dtype, dtype, Layout::repeated_rows, Layout::padded, 0);
      if (r.from.rank() == 2) try_sum(r, dtype, dtype, Layout::repeated_last, Layout::dense, 0);
    }
  // As many rows, or as long ones, as are added up in blocks of whole rows, of more columns than a block has.
  for (Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (const Reduction& r : {Reduction{{512, 4100}, {1, 4100}}, {{97, 32999}, {1, 32999}}})
      try_sum(r, dtype, Dtype::f32, Layout::dense, Layout::dense, 0);
  for (const Reduction& r :
       {Reduction{{0}, {1}}, {{3, 0}, {3, 1}}, {{0, 3}, {1, 3}}, {{0, 3}, {0, 1}}, {{0, 0}, {1, 1}}}) {
    try_sum(r, Dtype::f32, Dtype::f32, Layout::dense, Layout::dense, 0);  // no elements sum to 0
    try_sum(r, Dtype::f32, Dtype::f32, Layout::dense, Layout::dense, 1);
  }
  Trial trial(kernels::sum, "special values reach their own rows only");
  const Handle x = trial.input({19, 4}, Dtype::f32, special(76)), y = trial.output({19, 1}, Dtype::f32);
  trial.run([&](const Call& c) { kernels::sum(c.device, c(y), c(x), 0); });
}

void try_max(const Reduction& r, Dtype dtype, Layout layout, const Values& values) {
  Trial trial(kernels::max, join(dtype, r.from, " to ", r.to, " layout ", int(layout)));
  trial.accuracy.exact = true;
  const Handle x = trial.input(r.from, dtype, values, layout), y = trial.output(r.to, dtype);
  trial.run([&](const Call& c) { kernels::max(c.device, c(y), c(x)); });
}

void max_contract() {
  for (Dtype dtype : trained_types) {
    for (const Reduction& r : reductions)
      for (Layout layout : any_layout) {
        try_max(r, dtype, layout, uniform(r.from, -3, 3));
        try_max(r, dtype, layout, uniform(r.from, -5, -4));  // an accumulator that starts at 0 would show
      }
    try_max({{19, 4}, {19, 1}}, dtype, Layout::dense, special(76));
    try_max({{19, 4}, {1, 4}}, dtype, Layout::dense, special(76));
    for (int64_t at : {0, 5, 99, 256}) {
      Values one_nan = uniform(257, -3, 3), lowest(257, -std::numeric_limits<double>::infinity());
      one_nan[static_cast<size_t>(at)] = NAN;
      try_max({{257}, {1}}, dtype, Layout::dense, one_nan);
      try_max({{257}, {1}}, dtype, Layout::dense, lowest);
    }
  }
}

void argmax_contract() {
  for (Dtype dtype : trained_types)
    for (const Reduction& r : reductions)
      for (int dim = 0; dim < r.from.rank(); ++dim)
        for (Layout layout : any_layout) {
          Shape to = r.from;
          to[dim] = 1;
          Trial trial(kernels::argmax, join(dtype, r.from, " dim ", dim, " layout ", int(layout)));
          trial.accuracy.exact = true;
          // Few different numbers, so that there are ties and the first must win.
          const Handle x = trial.input(r.from, dtype, whole(r.from.numel(), -9, -4), layout);
          const Handle y = trial.output(to, Dtype::i64);
          trial.run([&](const Call& c) { kernels::argmax(c.device, c(y), c(x), dim); });
        }
  // Longer than what a kernel looks at in one piece.
  constexpr int64_t length = 1100;
  for (Dtype dtype : trained_types)
    for (Layout layout : any_layout)
      for (double top : {double{NAN}, double{INFINITY}, 7.0, -double{INFINITY}})
        for (const std::vector<size_t>& places :
             {std::vector<size_t>{0}, {600}, {1099}, {40, 600}, {511, 512}, {600, 1099}}) {
          Trial trial(kernels::argmax, join(dtype, " ", top, " at ", places[0], " layout ", int(layout)));
          trial.accuracy.exact = true;
          Values values = whole(length, -9, -4);
          for (const size_t place : places) values[place] = top;
          const Handle x = trial.input({1, length}, dtype, values, layout), y = trial.output({1, 1}, Dtype::i64);
          trial.run([&](const Call& c) { kernels::argmax(c.device, c(y), c(x), 1); });
        }
}

void sum_of_squares_contract() {
  for (Dtype dtype : trained_types) {
    for (const Shape& shape :
         {Shape{}, Shape{0}, Shape{1}, Shape{7}, Shape{63}, Shape{1000}, Shape{100000}, Shape{3, 257}})
      for (Layout layout : contiguous_layouts) {
        Trial trial(kernels::sum_of_squares, join(dtype, shape, " layout ", int(layout)));
        trial.accuracy.length = shape.numel();
        const Handle x = trial.input(shape, dtype, uniform(shape, -3, 3), layout), y = trial.output({1}, Dtype::f64);
        trial.run([&](const Call& c) { kernels::sum_of_squares(c.device, c(y), c(x)); });
      }
    for (double odd : {double{NAN}, double{INFINITY}, -double{INFINITY}, 1e30, 1e-30})
      for (size_t at : {size_t{0}, size_t{500}, size_t{998}}) {
        Values values = uniform(999, -3e-20, 3e-20);
        values[at] = odd;
        Trial trial(kernels::sum_of_squares, join(dtype, " with ", odd, " at ", at));
        trial.accuracy.length = 999;
        const Handle x = trial.input({999}, dtype, values), y = trial.output({1}, Dtype::f64);
        trial.run([&](const Call& c) { kernels::sum_of_squares(c.device, c(y), c(x)); });
      }
  }
}

const Contract sum_here{{&kernels::sum}, sum_contract};
const Contract max_here{{&kernels::max}, max_contract};
const Contract argmax_here{{&kernels::argmax}, argmax_contract};
const Contract sum_of_squares_here{{&kernels::sum_of_squares}, sum_of_squares_contract};

}  // namespace

TEST_CASE("contracts of the reductions", "[kernel_contract]") { check_contracts(); }
