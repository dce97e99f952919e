// Softmax and cross-entropy in one: a pass over the logits forward (two with label smoothing), one backward, nothing of
// their size kept.
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

/// Classes whose logits are read twice and stay in the first-level cache meanwhile.
constexpr int64_t long_piece = 2048;
/// Those that are read once.
template <class S>
inline constexpr int64_t short_piece = 1024 / sizeof(S);

/// Calls f(first, count) for the pieces of a row.
template <class F>
void each_piece(int64_t classes, int64_t piece, F f) {
  for (int64_t first = 0; first < classes; first += piece) f(first, std::min(piece, classes - first));
}

/// The largest of some numbers, and the sum of e^(x - largest).
struct Exponentials {
  float largest = -math::infinity, sum = 0;

  explicit Exponentials() = default;
  /// `coming` is where the next ones lie, `item` bytes each. They are fetched while exponentials are computed: the pass
  /// before, which does little else than read, would else wait for them.
  template <class S>
  Exponentials(Values<S> x, int64_t count, const char* coming, int64_t item)
      : largest(reduce_array_in<MaxOfNumbers, float>(x, count)) {
    const float shift = largest == -math::infinity ? 0 : largest;
    sum = sum_of(
        count, [=](int64_t j) { return math::exp_share(x[j] - shift); },
        [=](int64_t j, int64_t terms) { prefetch(coming + j * item, terms * item); });
  }
  void add(const Exponentials& other) {
    if (other.sum == 0) return;  // all of them -infinity
    const float top = std::max(largest, other.largest);
    sum = sum * math::exp_below(largest - top) + other.sum * math::exp_below(other.largest - top);
    largest = top;
  }
};

template <class S>
void cross_entropy_with(View loss, View lse, View logits, View labels, CrossEntropy options, void* status) {
  const int64_t classes = columns_of(logits), rows = rows_of(logits);
  const int64_t* label = labels.as<const int64_t>();
  check_indices(
      status, rows, classes, [=](int64_t r) { return label[r]; },
      [=](int64_t value) { return value == options.ignore_index; });
  parallel_for(rows, rows_of_tile(classes), [&](int64_t begin, int64_t end) {
    float buffer[long_piece];
    for (int64_t r = begin; r < end; ++r) {
      Exponentials all;
      each_piece(classes, long_piece, [&](int64_t first, int64_t count) {
        const int64_t item = size_of(logits.dtype), next = r * classes + first + count;
        all.add({part_of_row<S>(logits, r, first, count, buffer), count, logits.as<const char>() + next * item, item});
      });
      // Without a number above -infinity there is no share of anything.
      const float largest = all.largest, rest = all.sum == 0 ? math::nan : math::log(all.sum);
      float sum = 0;
      if (counts(label[r], classes, options)) {
        const float smoothing = options.label_smoothing, share = smoothing / static_cast<float>(classes);
        sum = (1 - smoothing) * ((largest - part_of_row<S>(logits, r, label[r], 1, buffer)[0]) + rest);
        if (smoothing != 0)
          each_piece(classes, short_piece<S>, [&](int64_t first, int64_t count) {
            const Values<S> x = part_values<S>(logits, r, first, count, buffer);
            sum += share * sum_of(count, [=](int64_t j) { return (largest - x[j]) + rest; });
          });
      }
      loss.as<float>()[r] = sum;
      lse.as<float>()[2 * r] = largest;
      lse.as<float>()[2 * r + 1] = rest;
    }
  });
}

void cross_entropy(View loss, View lse, View logits, View labels, CrossEntropy options, void* status) {
  with_read_type({logits}, [&]<class S>() { cross_entropy_with<S>(loss, lse, logits, labels, options, status); });
}

/// out = the gradient of a piece of a row, in which the label has this place, or none.
template <class S>
void gradient_of_piece(float* out, Values<S> x, int64_t count, int64_t label, float scale, const float* lse,
                       float share, float smoothing) {
  const float largest = lse[0], rest = lse[1];
  const bool here = label >= 0 && label < count;
  const float at_label = here ? scale * (math::expm1((x[label] - largest) - rest) + (smoothing - share)) : 0;
#pragma omp simd
  for (int64_t j = 0; j < count; ++j)
    out[j] = scale * (math::exp_below_for<is_narrow<S>>((x[j] - largest) - rest) - share);
  if (here) out[label] = at_label;
}

template <class S>
void cross_entropy_backward_with(View dlogits, View dloss, View logits, View lse, View labels, CrossEntropy options) {
  const int64_t classes = columns_of(logits);
  const float smoothing = options.label_smoothing, share = smoothing / static_cast<float>(classes);
  parallel_for(rows_of(logits), rows_of_tile(classes), [&](int64_t begin, int64_t end) {
    float buffer[short_piece<S>], gradient[short_piece<S>];
    for (int64_t r = begin; r < end; ++r) {
      const int64_t label = labels.as<const int64_t>()[r];
      const bool counted = counts(label, classes, options);
      const float scale = dloss.as<const float>()[r], *parts = lse.as<const float>() + 2 * r;
      each_piece(classes, short_piece<S>, [&](int64_t first, int64_t count) {
        float* out = part_target(dlogits, r, first, gradient);
        if (counted)
          gradient_of_piece<S>(out, part_values<S>(logits, r, first, count, buffer), count, label - first, scale, parts,
                               share, smoothing);
        else
          std::fill_n(out, count, 0.0f);
        finish_part(dlogits, r, first, count, out);
      });
    }
  });
}

void cross_entropy_backward(View dlogits, View dloss, View logits, View lse, View labels, CrossEntropy options) {
  with_read_type({logits, dlogits},
                 [&]<class S>() { cross_entropy_backward_with<S>(dlogits, dloss, logits, lse, labels, options); });
}

const InstallSimd cross_entropy_here{kernels::cross_entropy, cross_entropy, floats_of_32_bits};
const InstallSimd cross_entropy_backward_here{kernels::cross_entropy_backward, cross_entropy_backward,
                                              floats_of_32_bits};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
