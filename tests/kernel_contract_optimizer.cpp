// Contracts of the optimizer sweeps.
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/backends/kernels/optimizer.h"
#include "contract/contract.h"

using namespace cinta;
using namespace cinta::contract;

namespace {

/// Ends of the segments of flat buffers; an empty segment and an empty buffer are among them, and what is long enough
/// for several tiles.
const Values layouts[] = {
    {0}, {1}, {7}, {63}, {1000}, {3, 20}, {5, 5, 64, 257}, {16, 1000, 1003}, {20000}, {100, 40003, 40700, 70001}};

struct Flat {
  Flat(Trial& trial, const Values& ends) : n(static_cast<int64_t>(ends.back())) {
    const auto count = static_cast<int64_t>(ends.size());
    this->ends = trial.input({count}, Dtype::i64, ends);
    rate_factors = trial.input({count}, Dtype::f32, uniform(count, 0.5, 2));
    decays = trial.input({count}, Dtype::f32, uniform(count, 0, 0.2));
  }
  kernels::Segments operator()(const Call& c) const { return {c(ends), c(rate_factors), c(decays)}; }
  int64_t n;
  Handle ends, rate_factors, decays;
};

Handle state(Trial& trial, int64_t n, double low, double high, uint64_t seed, Layout layout) {
  return trial.both({n}, Dtype::f32, uniform(n, low, high, seed), layout);
}

/// None, bf16 or f16, by the layout; with old values, which a skipped step leaves.
Handle shadow_of(Trial& trial, int64_t n, Layout layout) {
  if (layout == contiguous_layouts[0]) return {};
  return trial.both({n}, n % 2 ? Dtype::f16 : Dtype::bf16, uniform(n, -2, 2, 5), layout);
}

void adamw_contract() {
  for (const Values& ends : layouts)
    for (double factor : {1.0, 0.37, 0.0})
      for (Layout layout : contiguous_layouts) {
        Trial trial(kernels::adamw, join(ends.back(), " elements, factor ", factor, " layout ", int(layout)));
        const Flat flat(trial, ends);
        const Handle w = state(trial, flat.n, -2, 2, 1, layout), m = state(trial, flat.n, -1, 1, 2, layout);
        const Handle v = state(trial, flat.n, 0, 1, 3, layout);
        const Handle g = trial.input({flat.n}, Dtype::f32, uniform(flat.n, -2, 2, 4), layout);
        const Handle scalars = trial.input({4}, Dtype::f32, {1e-2, factor, 0.271, 0.002997});
        const Handle shadow = shadow_of(trial, flat.n, layout);
        trial.run([&](const Call& c) {
          kernels::adamw(c.device, c(w), c(shadow), c(m), c(v), c(g), flat(c), c(scalars), {0.9f, 0.999f, 1e-8f});
        });
      }
  // A first step (m = v = 0) moves every weight by the rate, whatever the size of its gradient; no gradient moves none.
  Trial trial(kernels::adamw, "first step");
  const Flat flat(trial, {5});
  const Handle w = trial.both({5}, Dtype::f32, {1, 2, 3, 4, 5}), m = trial.both({5}, Dtype::f32, Values(5, 0));
  const Handle v = trial.both({5}, Dtype::f32, Values(5, 0));
  const Handle g = trial.input({5}, Dtype::f32, {1e-3, -1e3, 1, 0, 1e-12});
  const Handle scalars = trial.input({4}, Dtype::f32, {1e-2, 1, 0.1, 0.001});
  trial.run([&](const Call& c) { kernels::adamw(c.device, c(w), {}, c(m), c(v), c(g), flat(c), c(scalars), {}); });
}

void sgd_contract() {
  for (const Values& ends : layouts)
    for (double factor : {1.0, 0.37, 0.0})
      for (kernels::Sgd options : {kernels::Sgd{}, {0.9f, false}, {0.9f, true}}) {
        Trial trial(kernels::sgd, join(ends.back(), " elements, factor ", factor, " momentum ", options.momentum));
        const Flat flat(trial, ends);
        const Handle w = state(trial, flat.n, -2, 2, 1, Layout::dense);
        const Handle buffer = options.momentum > 0 ? state(trial, flat.n, -1, 1, 2, Layout::shifted) : Handle{};
        const Handle g = trial.input({flat.n}, Dtype::f32, uniform(flat.n, -2, 2, 4));
        const Handle scalars = trial.input({4}, Dtype::f32, {1e-2, factor, 1, 1});
        const Handle shadow = shadow_of(trial, flat.n, options.nesterov ? Layout::dense : Layout::shifted);
        trial.run([&](const Call& c) {
          kernels::sgd(c.device, c(w), c(shadow), c(buffer), c(g), flat(c), c(scalars), options);
        });
      }
}

void clip_factor_contract() {
  for (double squares : {0.0, 1e-12, 0.25, 1.0, 4.0, 1e30, 1e300, double{INFINITY}, double{NAN}})
    for (float max_norm : {0.0f, 1.0f, 5.0f}) {
      if (max_norm == 0 && !std::isfinite(squares)) continue;  // which of the two rules comes first is left open
      Trial trial(kernels::clip_factor, join("sum of squares ", squares, ", max_norm ", max_norm));
      const Handle scalars = trial.both({4}, Dtype::f32, {0.1, 0.2, 0.3, 0.4}), norm = trial.output({1}, Dtype::f32);
      const Handle sum = trial.input({1}, Dtype::f64, {squares});
      const Handle scale = squares == 4 ? trial.input({1}, Dtype::f32, {8}) : Handle{};
      trial.run(
          [&](const Call& c) { kernels::clip_factor(c.device, c(scalars), c(norm), c(sum), c(scale), max_norm); });
    }
}

void count_update_contract() {
  for (double factor : {1.0, 0.25, 0.0})
    for (double updates : {0.0, 1.0, 1000.0})
      for (double beta : {0.0, 0.9, 0.999}) {
        Trial trial(kernels::count_update, join("factor ", factor, ", update ", updates, ", beta ", beta));
        const Handle scalars = trial.both({4}, Dtype::f32, {0.1, factor, 0.3, 0.4}),
                     count = trial.both({1}, Dtype::i64, {updates});
        trial.run([&](const Call& c) { kernels::count_update(c.device, c(scalars), c(count), beta, 0.99); });
      }
}

void loss_scale_contract() {
  using Counts = std::array<double, 4>;
  for (bool dynamic : {true, false})
    for (double scale : {1.0, 65536.0, 0x1p127, 0x1p-126})
      for (const Counts& counts : {Counts{0, 1, 0, 0}, Counts{2, 1, 3, 9}, Counts{1, 2, 0, 1}, Counts{0, -4, 6, 6}})
        for (const Values& squares :
             {Values{0.5}, Values{1, 2, 3}, Values{1, INFINITY, 3}, Values{NAN, NAN}, Values{}}) {
          Trial trial(kernels::update_loss_scale,
                      join(dynamic, " scale ", scale, " ", counts[0], " ", squares.size(), " groups"));
          const auto groups = static_cast<int64_t>(squares.size());
          const Handle factor = trial.both({1}, Dtype::f32, {scale}),
                       count = trial.both({4}, Dtype::i64, Values(counts.begin(), counts.end())),
                       found = trial.both({groups}, Dtype::i64, Values(squares.size(), 5)),
                       sums = trial.input({groups}, Dtype::f64, squares);
          trial.run([&](const Call& c) {
            kernels::update_loss_scale(
                c.device, c(factor), c(count), c(found), c(sums),
                {.dynamic = dynamic, .growth = 2, .backoff = 0.5f, .interval = 3, .hysteresis = 2});
          });
        }
}

const Contract adamw_here{{&kernels::adamw}, adamw_contract};
const Contract sgd_here{{&kernels::sgd}, sgd_contract};
const Contract clip_factor_here{{&kernels::clip_factor}, clip_factor_contract};
const Contract count_update_here{{&kernels::count_update}, count_update_contract};
const Contract loss_scale_here{{&kernels::update_loss_scale}, loss_scale_contract};

}  // namespace

TEST_CASE("contracts of the optimizer sweeps", "[kernel_contract]") { check_contracts(); }
