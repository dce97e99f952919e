// Optimizer sweeps: one pass over the buffers in fixed tiles, each of which holds a part of every segment.
#include <algorithm>
#include <bit>
#include <cmath>

#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/cpu/simd/convert.h"
#include "cinta/backends/cpu/simd/stream.h"
#include "cinta/backends/kernels/optimizer.h"

#include "cinta/backends/cpu/isa_begin.h"
namespace {

using namespace kernels;

constexpr int64_t unit = 1024;  ///< weights that are updated at once

/// How what products read of an update is stored. The weights of a small net lie in the caches of all threads, which
/// have read them: each line is first asked for, or goes past the caches. Of a large one the shadow does, which the
/// update does not read: each of its lines would else be read for nothing.
enum class Stores { shadow_past_caches, asked_for, past_caches };

/// Updates weights begin .. end by f(where they lie or a copy, begin, end), and then their shadow. f is called at one
/// place, so that the sums are the same however what products read of both is stored.
template <class T, class F>
void update_part(const View& w, const View& shadow, int64_t begin, int64_t end, Stores stores, F f) {
  const int64_t count = end - begin;
  const bool weights_past_caches = stores == Stores::past_caches && !shadow;
  alignas(64) T fresh[unit];
  T *weights = w.as<T>() + begin, *updated = weights_past_caches ? fresh : weights;
  char* read = shadow ? shadow.as<char>() + begin * size_of(shadow.dtype) : reinterpret_cast<char*>(weights);
  if (updated == fresh) std::copy_n(weights, count, fresh);
  if (stores == Stores::asked_for) prefetch_to_write(read, count * size_of(shadow ? shadow.dtype : w.dtype));
  f(updated, begin, end);
  if (updated == fresh) stream(weights, fresh, count * static_cast<int64_t>(sizeof(T)));
  if (!shadow) return;
  if (stores != Stores::asked_for)
    stream_as<unit>(shadow.dtype, read, weights, count);
  else
    store(shadow.dtype, shadow.data, begin, 1, weights, count);
}

/// Calls f(weights, begin, end, rate factor, decay) for parts of all segments, on all threads. A tile has its share of
/// every segment, the first tile the first, since that is how products share out the rows of a weight and of its
/// gradient: a thread finds in its caches what it multiplied with, where threads share no cache. There, BERT-base's
/// update takes 35 ms in 64 tiles, 40 to 48 in 256, and took 60 in pieces of 16384 one after another; 64 threads are
/// more than memory keeps busy.
template <class T, class F>
void sweep(const View& w, const View& shadow, const Segments& segments, F f) {
  constexpr int64_t least = elements_of_tile, most_tiles = 64, most_in_caches = 4 << 20;  // weights
  const int64_t count = w.numel(), *ends = segments.ends.as<const int64_t>();
  const auto tiles = std::min<int64_t>(most_tiles, std::bit_floor(static_cast<uint64_t>(count / least) | 1));
  const Stores stores = count > most_in_caches ? Stores::shadow_past_caches
                        : threads_far_apart()  ? Stores::past_caches
                                               : Stores::asked_for;
  parallel_for(tiles, 1, [&](int64_t tile, int64_t) {
    int64_t first = 0;
    for (int64_t segment = 0; segment < segments.ends.numel(); first = ends[segment++]) {
      const int64_t length = ends[segment] - first;
      const auto cut = [&](int64_t t) { return t == tiles ? length : length * t / tiles / unit * unit; };
      for (int64_t begin = cut(tile), end = cut(tile + 1); begin < end; begin += unit)
        update_part<T>(w, shadow, first + begin, first + std::min(begin + unit, end), stores,
                       [&](T* weights, int64_t from, int64_t to) {
                         f(weights, from, to, segments.rate_factors.as<const float>()[segment],
                           segments.decays.as<const float>()[segment]);
                       });
    }
  });
}

/// Calls f with float or double, as all the buffers are; throws DtypeError otherwise.
template <class F>
void with_type(const char* row, std::initializer_list<View> buffers, F f) {
  const Dtype dtype = buffers.begin()->dtype;
  for (const View& view : buffers)
    require<DtypeError>(!view || (view.dtype == dtype && (dtype == Dtype::f32 || dtype == Dtype::f64)), row, Where(),
                        "buffers of one type, f32 or f64, given ", dtype, " and ", view.dtype);
  dtype == Dtype::f32 ? f.template operator()<float>() : f.template operator()<double>();
}

/// One of the numbers that lie on the device.
template <class T>
T scalar(const View& scalars, SweepScalar which) {
  return static_cast<T>(scalars.as<const float>()[which]);
}

constexpr int64_t at_once = 64;  ///< values between two fetches

/// Fetches `at_once` values that lie a KiB ahead: an Emerald Rapids sees four streams come too late.
template <class T>
[[gnu::always_inline]] inline void fetch_next(std::initializer_list<const T*> streams) {
  for (const T* stream : streams) prefetch(stream + 1024 / sizeof(T), at_once * static_cast<int64_t>(sizeof(T)));
}

template <class T>
struct AdamWNumbers {
  T factor, beta1, beta2, rest1, rest2, inverse_root, eps;
};
template <class T>
void adamw_part(T* w, T* m, T* v, const T* gradient, int64_t count, AdamWNumbers<T> k, T shrink, T step) {
  for (int64_t begin = 0; begin < count; begin += at_once) {
    fetch_next({w + begin, m + begin, v + begin, gradient + begin});
    const int64_t end = std::min(begin + at_once, count);
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const T g = k.factor * gradient[i];
      const T first = k.beta1 * m[i] + k.rest1 * g, second = k.beta2 * v[i] + k.rest2 * (g * g);
      m[i] = first;
      v[i] = second;
      w[i] = w[i] - shrink * w[i] - step * first / (std::sqrt(second) * k.inverse_root + k.eps);
    }
  }
}

void sweep_adamw(View w, View shadow, View m, View v, View gradient, Segments segments, View scalars, AdamW options) {
  with_type("adamw", {w, m, v, gradient}, [&]<class T>() {
    const T rate = scalar<T>(scalars, sweep_rate), factor = scalar<T>(scalars, sweep_gradient_factor);
    const T correction1 = scalar<T>(scalars, sweep_correction1), correction2 = scalar<T>(scalars, sweep_correction2);
    if (factor == 0) return;
    const AdamWNumbers<T> numbers{factor,
                                  static_cast<T>(options.beta1),
                                  static_cast<T>(options.beta2),
                                  static_cast<T>(1 - options.beta1),
                                  static_cast<T>(1 - options.beta2),
                                  1 / std::sqrt(correction2),
                                  static_cast<T>(options.eps)};
    sweep<T>(w, shadow, segments, [&](T* weights, int64_t begin, int64_t end, float rate_factor, float decay) {
      const T own_rate = rate * rate_factor;
      adamw_part<T>(weights, m.as<T>() + begin, v.as<T>() + begin, gradient.as<const T>() + begin, end - begin, numbers,
                    own_rate * decay, own_rate / correction1);
    });
  });
}

/// `buffer` is null without momentum.
template <class T>
void sgd_part(T* w, T* buffer, const T* gradient, int64_t count, T factor, T decay, T rate, T momentum, bool nesterov) {
  if (!buffer) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) w[i] -= rate * (factor * gradient[i] + decay * w[i]);
    return;
  }
  const T past = nesterov ? momentum : 1, present = nesterov ? 1 : 0;  // of the velocity and of g in the step
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const T g = factor * gradient[i] + decay * w[i];
    const T velocity = momentum * buffer[i] + g;
    buffer[i] = velocity;
    w[i] -= rate * (present * g + past * velocity);
  }
}

void sweep_sgd(View w, View shadow, View buffer, View gradient, Segments segments, View scalars, Sgd options) {
  with_type("sgd", {w, buffer, gradient}, [&]<class T>() {
    const T rate = scalar<T>(scalars, sweep_rate), factor = scalar<T>(scalars, sweep_gradient_factor);
    if (factor == 0) return;
    sweep<T>(w, shadow, segments, [&](T* weights, int64_t begin, int64_t end, float rate_factor, float decay) {
      sgd_part<T>(weights, buffer ? buffer.as<T>() + begin : nullptr, gradient.as<const T>() + begin, end - begin,
                  factor, decay, rate * rate_factor, static_cast<T>(options.momentum), options.nesterov);
    });
  });
}

void find_clip_factor(View scalars, View norm, View sum_of_squares, View loss_scale, float max_norm) {
  const double scale = loss_scale ? *loss_scale.as<const float>() : 1;
  const double length = std::sqrt(*sum_of_squares.as<const double>()) / scale;
  *norm.as<float>() = static_cast<float>(length);
  const double clipped = max_norm > 0 ? std::min(1.0, max_norm / (length + 1e-6)) : 1;
  scalars.as<float>()[sweep_gradient_factor] = std::isfinite(length) ? static_cast<float>(clipped / scale) : 0;
}

void add_update(View scalars, View updates, double beta1, double beta2) {
  float* of_step = scalars.as<float>();
  if (of_step[sweep_gradient_factor] == 0) return;
  const auto number = static_cast<double>(++*updates.as<int64_t>());
  of_step[sweep_correction1] = static_cast<float>(1 - std::pow(beta1, number));
  of_step[sweep_correction2] = static_cast<float>(1 - std::pow(beta2, number));
}

void change_loss_scale(View scale, View counts, View found, View squares, LossScale options) {
  int64_t *count = counts.as<int64_t>(), *overflows = found.as<int64_t>();
  float& factor = *scale.as<float>();
  bool skipped = false;
  for (int64_t g = 0; g < squares.numel(); ++g) {
    const bool overflow = !std::isfinite(squares.as<const double>()[g]);
    overflows[g] += overflow;
    skipped |= overflow;
  }
  count[scale_skipped] += skipped;
  count[scale_skipped_in_row] = skipped ? count[scale_skipped_in_row] + 1 : 0;
  count[scale_good] = skipped ? 0 : count[scale_good] + 1;
  float changed = factor;
  if (skipped) {
    if (--count[scale_patience] <= 0) changed *= options.backoff;
  } else if (count[scale_good] >= options.interval) {
    count[scale_good] = 0;
    count[scale_patience] = options.hysteresis;
    changed *= options.growth;
  }
  if (options.dynamic && std::isnormal(changed)) factor = changed;
}

const InstallSimd adamw{kernels::adamw, sweep_adamw};
const InstallSimd sgd{kernels::sgd, sweep_sgd};
const InstallSimd clip_factor{kernels::clip_factor, find_clip_factor};
const InstallSimd count_update{kernels::count_update, add_update};
const InstallSimd update_loss_scale{kernels::update_loss_scale, change_loss_scale};

}  // namespace
#include "cinta/backends/cpu/isa_end.h"
