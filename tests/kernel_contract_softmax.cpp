// Contracts of softmax and the losses on it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/backends/kernels/softmax.h"
#include "contract/contract.h"

using namespace cinta;
using namespace cinta::contract;

namespace {

const Shape shapes[] = {{0, 3}, {1}, {1, 1}, {3, 1}, {5, 7}, {2, 3, 17}, {3, 63}, {3, 257}, {2, 1000}, {70, 33}};

View f64_view(Values& values, const Shape& shape) {
  return {values.data(), shape, contiguous_strides(shape), Dtype::f64, true};
}

void try_forward(Kernel<void(View, View)>& row, const Shape& shape, Dtype dtype, Layout layout, const Values& values) {
  Trial trial(row, join(dtype, shape, " layout ", int(layout)));
  trial.accuracy.length = shape.back();
  const Handle x = trial.input(shape, dtype, values, layout), y = trial.output(shape, dtype, layout);
  trial.run([&](const Call& c) { row(c.device, c(y), c(x)); });
}

void try_backward(Kernel<void(View, View)>& forward, Kernel<void(View, View, View)>& row, const Shape& shape,
                  Dtype dtype, Layout layout) {
  Values y_values = uniform(shape, -4, 4);
  forward(reference, f64_view(y_values, shape), f64_view(y_values, shape));
  Trial trial(row, join(dtype, shape, " layout ", int(layout)));
  trial.accuracy.length = shape.back();
  const Handle y = trial.input(shape, dtype, y_values, layout);
  const Handle dy = trial.input(shape, dtype, uniform(shape, -2, 2, 3), layout),
               dx = trial.output(shape, dtype, layout);
  trial.run([&](const Call& c) { row(c.device, c(dx), c(dy), c(y)); });
}

void try_both(Kernel<void(View, View)>& forward, Kernel<void(View, View, View)>& backward) {
  for (Dtype dtype : trained_types) {
    for (const Shape& shape : shapes)
      for (Layout layout : contiguous_layouts) {
        try_forward(forward, shape, dtype, layout, uniform(shape, -4, 4));
        try_backward(forward, backward, shape, dtype, layout);
      }
    try_forward(forward, {3, 33}, dtype, Layout::dense, uniform(99, 900, 1000));  // would overflow without the maximum
    try_forward(forward, {3, 33}, dtype, Layout::dense, Values(99, -INFINITY));
    Values masked = uniform(99, -4, 4);
    for (size_t i : {0, 1, 34, 40, 98}) masked[i] = -INFINITY;
    try_forward(forward, {3, 33}, dtype, Layout::dense, masked);
    masked[50] = NAN;
    try_forward(forward, {3, 33}, dtype, Layout::dense, masked);
  }
}
void softmax_contract() { try_both(kernels::softmax, kernels::softmax_backward); }
void log_softmax_contract() { try_both(kernels::log_softmax, kernels::log_softmax_backward); }

struct Loss {
  int64_t rows, classes;
  float smoothing;
  bool some_ignored;
  Values labels = {};  ///< drawn where there are none
};

Values labels_of(const Loss& loss) {
  if (!loss.labels.empty()) return loss.labels;
  Values labels = whole(loss.rows, 0, loss.classes, 9);
  for (size_t i = 0; loss.some_ignored && i < labels.size(); i += 3) labels[i] = -100;
  return labels;
}

void try_cross_entropy(const Loss& loss, Dtype dtype, Layout layout, const Values& logits) {
  Trial trial(kernels::cross_entropy, join(dtype, " ", loss.rows, "x", loss.classes, " smoothing ", loss.smoothing));
  trial.accuracy.length = loss.classes;
  const Handle x = trial.input({loss.rows, loss.classes}, dtype, logits, layout);
  const Handle labels = trial.input({loss.rows}, Dtype::i64, labels_of(loss));
  const Handle out = trial.output({loss.rows}, Dtype::f32), lse = trial.output({loss.rows, 2}, Dtype::f32);
  trial.run([&](const Call& c) {
    kernels::cross_entropy(c.device, c(out), c(lse), c(x), c(labels), {-100, loss.smoothing}, c.status);
  });
}

void try_cross_entropy_backward(const Loss& loss, Dtype dtype, bool in_place) {
  const Shape shape{loss.rows, loss.classes};
  Values logits = uniform(shape, -4, 4), lse_values;
  for (int64_t r = 0; r < loss.rows; ++r) {
    const auto row = logits.begin() + r * loss.classes;
    const double largest = *std::max_element(row, row + loss.classes);
    double sum = 0;
    for (int64_t j = 0; j < loss.classes; ++j) sum += std::exp(row[j] - largest);
    lse_values.push_back(largest);
    lse_values.push_back(std::log(sum));
  }
  Trial trial(kernels::cross_entropy_backward,
              join(dtype, shape, " smoothing ", loss.smoothing, in_place ? " in place" : ""));
  const Handle x = in_place ? trial.both(shape, dtype, logits) : trial.input(shape, dtype, logits);
  const Handle dloss = trial.input({loss.rows}, Dtype::f32, uniform(loss.rows, -1, 1, 3));
  const Handle lse = trial.input({loss.rows, 2}, Dtype::f32, lse_values);
  const Handle labels = trial.input({loss.rows}, Dtype::i64, labels_of(loss));
  const Handle dx = in_place ? x : trial.output(shape, dtype);
  trial.run([&](const Call& c) {
    kernels::cross_entropy_backward(c.device, c(dx), c(dloss), c(x), c(lse), c(labels), {-100, loss.smoothing});
  });
}

void cross_entropy_contract() {
  for (Dtype dtype : trained_types)
    for (auto [rows, classes] :
         {std::pair<int64_t, int64_t>{0, 5}, {1, 1}, {3, 2}, {7, 10}, {5, 63}, {4, 257}, {2, 1000}})
      for (float smoothing : {0.0f, 0.1f})
        for (bool some_ignored : {false, true}) {
          const Loss loss{rows, classes, smoothing, some_ignored};
          const Values logits = uniform(rows * classes, -4, 4);
          for (Layout layout : contiguous_layouts) try_cross_entropy(loss, dtype, layout, logits);
          for (bool in_place : {false, true}) try_cross_entropy_backward(loss, dtype, in_place);
        }
  // Rows of several pieces: the label in any of them, and numbers that are none.
  for (Dtype dtype : trained_types)
    for (float smoothing : {0.0f, 0.1f}) {
      for (int64_t classes : {1024, 1025, 2048, 2049, 5000}) {
        const double last = double(classes - 1);
        const Loss loss{5, classes, smoothing, false, {0, 1023, last, double(classes / 2), std::min(2048.0, last)}};
        for (Layout layout : contiguous_layouts) try_cross_entropy(loss, dtype, layout, uniform(5 * classes, -4, 4));
        for (bool in_place : {false, true}) try_cross_entropy_backward(loss, dtype, in_place);
      }
      const Loss loss{8, 5000, smoothing, false, {5, 2500, 4999, 1200, 3, 1100, 2400, 4097}};
      Values logits = uniform(8 * 5000, -4, 4);
      const auto set = [&](int64_t row, int64_t begin, int64_t end, double value) {
        for (int64_t j = begin; j < end; ++j) logits[static_cast<size_t>(row * 5000 + j)] = value;
      };
      set(0, 2048, 4096, -INFINITY);
      set(1, 0, 2048, -INFINITY);
      set(2, 0, 5000, -INFINITY);
      set(3, 7, 8, NAN);
      set(4, 2100, 2101, NAN);
      set(5, 1500, 1501, INFINITY);
      set(6, 0, 2048, 90);
      set(6, 2048, 4096, -90);
      set(7, 0, 2048, -90);
      set(7, 2048, 4096, 90);
      if (smoothing == 0) try_cross_entropy(loss, dtype, Layout::dense, logits);
    }
  try_cross_entropy({5, 33, 0, false}, Dtype::f32, Layout::dense, uniform(165, 900, 1000));
  for (double bad : {-1.0, 10.0, 1e12}) {
    Trial trial(kernels::cross_entropy, join("label ", bad, " of 10"));
    trial.accuracy.length = 10;
    const Handle x = trial.input({3, 10}, Dtype::f32, uniform(30, -2, 2));
    const Handle labels = trial.input({3}, Dtype::i64, {4, bad, 9});
    const Handle out = trial.output({3}, Dtype::f32), lse = trial.output({3, 2}, Dtype::f32);
    trial.run([&](const Call& c) { kernels::cross_entropy(c.device, c(out), c(lse), c(x), c(labels), {}, c.status); },
              true);
  }
}

const Contract softmax_here{{&kernels::softmax, &kernels::softmax_backward}, softmax_contract};
const Contract log_softmax_here{{&kernels::log_softmax, &kernels::log_softmax_backward}, log_softmax_contract};
const Contract cross_entropy_here{{&kernels::cross_entropy, &kernels::cross_entropy_backward}, cross_entropy_contract};

}  // namespace

TEST_CASE("contracts of softmax and the losses", "[kernel_contract]") { check_contracts(); }
