// Optimizer sweeps, one weight at a time.
#include "cinta/backends/kernels/optimizer.h"

#include <algorithm>

#include "cinta/backends/reference/element.h"

namespace cinta::oracle {
namespace {

using namespace kernels;

/// Calls f(element number, rate, decay) for every element of the segments.
template <class F>
void each_element(const Segments& segments, double rate, F f) {
  int64_t i = 0;
  for (int64_t s = 0; s < segments.ends.size(0); ++s)
    for (; i < at(segments.ends, s).integer(); ++i) f(i, rate * at(segments.rate_factors, s), at(segments.decays, s));
}

void sweep_adamw(View w, View shadow, View m, View v, View gradient, Segments segments, View scalars, AdamW options) {
  const double factor = at(scalars, sweep_gradient_factor), beta1 = options.beta1, beta2 = options.beta2;
  const double correction1 = at(scalars, sweep_correction1), correction2 = at(scalars, sweep_correction2);
  if (factor == 0) return;
  each_element(segments, at(scalars, sweep_rate), [&](int64_t i, double rate, double decay) {
    const double g = factor * at(gradient, i);
    const double first = beta1 * at(m, i) + (1 - beta1) * g, second = beta2 * at(v, i) + (1 - beta2) * g * g;
    const double step = first / correction1 / (std::sqrt(second / correction2) + options.eps);
    at(w, i) = at(w, i) - rate * decay * at(w, i) - rate * step;
    if (shadow) at(shadow, i) = at(w, i);
    at(m, i) = first;
    at(v, i) = second;
  });
}

void sweep_sgd(View w, View shadow, View buffer, View gradient, Segments segments, View scalars, Sgd options) {
  const double factor = at(scalars, sweep_gradient_factor);
  if (factor == 0) return;
  each_element(segments, at(scalars, sweep_rate), [&](int64_t i, double rate, double decay) {
    const double g = factor * at(gradient, i) + decay * at(w, i);
    const double velocity = buffer ? options.momentum * at(buffer, i) + g : g;
    at(w, i) -= rate * (options.nesterov ? g + options.momentum * velocity : velocity);
    if (shadow) at(shadow, i) = at(w, i);
    if (buffer) at(buffer, i) = velocity;
  });
}

void find_clip_factor(View scalars, View norm, View sum_of_squares, View loss_scale, float max_norm) {
  const double scale = loss_scale ? nth(loss_scale, 0) : 1.0, length = std::sqrt(nth(sum_of_squares, 0)) / scale;
  nth(norm, 0) = length;
  const double clipped = max_norm > 0 ? std::min(1.0, max_norm / (length + 1e-6)) : 1.0;
  at(scalars, sweep_gradient_factor) = std::isfinite(length) ? clipped / scale : 0;
}

void add_update(View scalars, View updates, double beta1, double beta2) {
  if (at(scalars, sweep_gradient_factor) == 0) return;
  const Element count = at(updates, 0);
  count.set_integer(count.integer() + 1);
  const auto number = static_cast<double>(count.integer());
  at(scalars, sweep_correction1) = 1 - std::pow(beta1, number);
  at(scalars, sweep_correction2) = 1 - std::pow(beta2, number);
}

void change_loss_scale(View scale, View counts, View found, View squares, LossScale options) {
  const auto add = [](const Element& count, int64_t value) { count.set_integer(count.integer() + value); };
  bool skipped = false;
  for (int64_t g = 0; g < squares.size(0); ++g)
    if (!std::isfinite(at(squares, g))) {
      skipped = true;
      add(at(found, g), 1);
    }
  const Element good = at(counts, scale_good), patience = at(counts, scale_patience);
  if (skipped) {
    add(at(counts, scale_skipped), 1);
    add(at(counts, scale_skipped_in_row), 1);
    good.set_integer(0);
    add(patience, -1);
    const double smaller = at(scale, 0) * options.backoff;
    if (options.dynamic && patience.integer() <= 0 && smaller >= 0x1p-126) at(scale, 0) = smaller;
    return;
  }
  at(counts, scale_skipped_in_row).set_integer(0);
  add(good, 1);
  if (good.integer() < options.interval) return;
  good.set_integer(0);
  patience.set_integer(options.hysteresis);
  const double larger = at(scale, 0) * options.growth;
  if (options.dynamic && larger < 0x1p128) at(scale, 0) = larger;
}

const Install adamw{kernels::adamw, reference, sweep_adamw};
const Install sgd{kernels::sgd, reference, sweep_sgd};
const Install clip_factor{kernels::clip_factor, reference, find_clip_factor};
const Install count_update{kernels::count_update, reference, add_update};
const Install update_loss_scale{kernels::update_loss_scale, reference, change_loss_scale};

}  // namespace
}  // namespace cinta::oracle
