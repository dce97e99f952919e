// Where dropout and stochastic rounding get their numbers. Every one is a pure function of (seed, stream, step,
// element): nothing is drawn, nothing advances, so that a recomputed, sharded or resumed step sees the same.
#pragma once
#include <string_view>

#include "cinta/backends/kernels/random.h"
#include "cinta/core/tensor.h"

namespace cinta {

/// One place in a model that draws a word for each element.
struct RandomSite {
  Tensor state;         ///< i64[3] {seed, step, first_sample}
  uint32_t stream = 0;  ///< the site's own stream of numbers
};

/// One place in a model that drops elements. The default site drops nothing (evaluation mode).
struct DropoutSite {
  Tensor state;         ///< i64[3] {seed, step, first_sample}; may be absent iff p is 0
  uint32_t stream = 0;  ///< the site's own stream of numbers
  double p = 0;         ///< probability of dropping an element, in [0, 1)
  Tensor rows = {};     ///< i64[R]: what is masked has R rows, those of this number of a whole; absent: is a whole
  int64_t rows_per_sample = 0;  ///< of that whole

  /// The site for the rows `numbers` alone of a tensor with this many rows a sample: each is masked as among all.
  DropoutSite of_rows(const Tensor& numbers, int64_t rows_a_sample) const;

  /// What a kernel is given, for a tensor with this many rows a sample.
  kernels::Dropout row(int64_t rows_a_sample) const {
    if (p == 0) return {};
    const float probability = static_cast<float>(p);
    if (!rows) return {state.view(), stream, probability, rows_a_sample};
    return {state.view(), stream, probability, rows_per_sample, rows.view()};
  }
};

/// The state that all sites of a model share: seed and step lie on the device, so that a captured step can be replayed.
class Random {
 public:
  explicit Random(uint64_t seed = 0, Device device = cpu);
  /// The number of the training step. Between a forward and its backward it must not change.
  void set_step(int64_t step) { set(1, step); }
  /// The global number of this batch's first sample, where a batch is split.
  void set_first_sample(int64_t sample) { set(2, sample); }
  const Tensor& state() const { return state_; }
  /// The site called `name`: equal names draw equal words.
  RandomSite site(std::string_view name) const;
  /// The site called `name`: equal names draw equal masks. Throws ValueError unless p is in [0, 1).
  DropoutSite site(std::string_view name, double p, Where where = Where::current()) const;

 private:
  void set(int64_t index, int64_t value);
  Tensor state_;
};

/// Rows (all dimensions but the last) that one sample of x[B,..,N] has.
int64_t rows_per_sample(const Tensor& x);

/// Throws ValueError unless `state`, which the message calls `name`, is i64[3], and DeviceError unless on x's device.
void check_random_state(const char* op, const char* name, const Tensor& state, const Tensor& x, Where where);
/// Throws ValueError unless the site's p is in [0, 1) and, where it is not 0, its state is i64[3] on x's device and
/// `rows`, where they are given, name each row of x.
void check_dropout(const char* op, const DropoutSite& site, const Tensor& x, Where where);

/// A site as an op keeps it from forward to backward.
class Draw {
 public:
  Draw() = default;
  explicit Draw(const DropoutSite& site);
  explicit operator bool() const { return site_.p != 0; }
  /// The site, for the same masks again. Throws ValueError when step, seed, first sample or rows were changed
  /// meanwhile.
  const DropoutSite& again(const char* op) const;

 private:
  DropoutSite site_;
  uint32_t version_ = 0, rows_version_ = 0;
};

}  // namespace cinta
