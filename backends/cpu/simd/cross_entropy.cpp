// Softmax and cross-entropy in one: two passes over the logits forward, one backward, nothing of their size kept.
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/rows.h"
#include "cinta/backends/cpu/status.h"
#include "cinta/backends/kernels/softmax.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

using kernels::CrossEntropy;

bool counts(int64_t label, int64_t classes, const CrossEntropy& options) {
  return label != options.ignore_index && label >= 0 && label < classes;
}

void cross_entropy(View loss, View lse, View logits, View labels, CrossEntropy options, void* status) {
  const int64_t classes = columns_of(logits), rows = rows_of(logits);
  const int64_t* label = labels.as<const int64_t>();
  check_indices(
      status, rows, classes, [=](int64_t r) { return label[r]; },
      [=](int64_t value) { return value == options.ignore_index; });
  parallel_for(rows, rows_of_tile(classes), [&](int64_t begin, int64_t end) {
    float* buffer = logits.dtype == Dtype::f32 ? nullptr : scratch<float>(classes, Workspace::tile);
    for (int64_t r = begin; r < end; ++r) {
      const float* x = read_row(logits, r, classes, buffer);
      const float largest = reduce_array<Max>(x, classes);
      const float rest = math::log(sum_of(classes, [=](int64_t j) { return math::exp_below(x[j] - largest); }));
      float sum = 0;
      if (counts(label[r], classes, options)) {
        const auto surprise = [=](int64_t j) { return (largest - x[j]) + rest; };
        const float smoothing = options.label_smoothing;
        sum = (1 - smoothing) * surprise(label[r]);
        if (smoothing != 0) sum += smoothing / static_cast<float>(classes) * sum_of(classes, surprise);
      }
      loss.as<float>()[r] = sum;
      lse.as<float>()[r] = largest + rest;
    }
  });
}

void cross_entropy_backward(View dlogits, View dloss, View logits, View lse, View labels, CrossEntropy options) {
  const int64_t classes = columns_of(logits);
  const float smoothing = options.label_smoothing, share = smoothing / static_cast<float>(classes);
  parallel_for(rows_of(logits), rows_of_tile(classes), [&](int64_t begin, int64_t end) {
    const bool plain = logits.dtype == Dtype::f32 && dlogits.dtype == Dtype::f32;
    float* buffer = plain ? nullptr : scratch<float>(2 * classes, Workspace::tile);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t label = labels.as<const int64_t>()[r];
      float* out = row_target(dlogits, r, classes, buffer);
      if (counts(label, classes, options)) {
        const float* x = read_row(logits, r, classes, buffer + classes);
        const float scale = dloss.as<const float>()[r], shift = lse.as<const float>()[r];
        const float at_label = scale * (math::expm1(x[label] - shift) + (smoothing - share));
        const float spread = share;  // a copy: what the lambda refers to might lie in `out`, which ends vectorisation
#pragma omp simd
        for (int64_t j = 0; j < classes; ++j) out[j] = scale * (math::exp_below(x[j] - shift) - spread);
        out[label] = at_label;
      } else {
        std::fill_n(out, classes, 0.0f);
      }
      finish_row(dlogits, r, classes, out);
    }
  });
}

const InstallSimd cross_entropy_here{kernels::cross_entropy, cross_entropy, floats_of_32_bits};
const InstallSimd cross_entropy_backward_here{kernels::cross_entropy_backward, cross_entropy_backward,
                                              floats_of_32_bits};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
