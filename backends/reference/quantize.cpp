// Scaled narrow products, element by element. Scales and scaled values are rounded to f32, as the rows promise.
#include "cinta/backends/kernels/quantize.h"

#include <algorithm>
#include <limits>

#include "cinta/backends/reference/element.h"
#include "cinta/core/format_facts.h"

namespace cinta::oracle {
namespace {

using kernels::Blocks;
using kernels::ScaleRule;

void find_largest(View largest, View x, Blocks blocks) {
  for (const Index& i : Indices(largest.shape)) at(largest, i) = 0;
  for (const Index& i : Indices(x.shape)) {
    const Element out = at(largest, i[0] / blocks.rows, i[1] / blocks.columns);
    const double magnitude = std::abs(double{at(x, i)});
    if (std::isnan(magnitude) || magnitude > out) out = magnitude;
  }
}

float scale_for(double amax, ScaleRule rule) {
  if (rule.largest == 0 || amax == 0 || !std::isfinite(amax)) return 1;
  const double exact = std::ldexp(static_cast<float>(rule.largest / amax), -rule.margin);
  const double scale = rule.power_of_two ? std::exp2(std::floor(std::log2(exact))) : exact;
  return static_cast<float>(std::clamp(scale, 0x1p-126, 0x1p126));
}

void set_scale(Element scale, Element inverse, double amax, ScaleRule rule) {
  const float value = scale_for(amax, rule);
  scale = value;
  inverse = std::isfinite(amax) ? double{1 / value} : NAN;
}

void scale_blocks(View scales, View amax, ScaleRule rule) {
  for (const Index& i : Indices(amax.shape))
    set_scale(at(scales, 0, i[0], i[1]), at(scales, 1, i[0], i[1]), at(amax, i), rule);
}

void take_delayed(View scales, View state, View amax, ScaleRule rule, bool stage) {
  const double largest = at(amax, 0, 0);
  const Element staged = at(state, kernels::delayed_staged);
  if (at(state, kernels::delayed_history) == 0) {
    set_scale(at(scales, 0, 0, 0), at(scales, 1, 0, 0), largest, rule);
  } else {
    at(scales, 0, 0, 0) = at(state, kernels::delayed_scale);
    at(scales, 1, 0, 0) = std::isfinite(largest) ? double{at(state, kernels::delayed_inverse)} : NAN;
  }
  if (stage && std::isfinite(largest) && largest > staged) staged = largest;
}

void renew_delayed(View state, View factor, ScaleRule rule, bool most_recent) {
  const Element staged = at(state, kernels::delayed_staged);
  if (factor && at(factor, 0) == 0) staged = 0.0;
  if (staged == 0) return;
  for (int64_t i = state.size(0) - 1; i > kernels::delayed_history; --i) at(state, i) = at(state, i - 1);
  at(state, kernels::delayed_history) = staged;
  staged = 0;
  double amax = 0;
  for (int64_t i = kernels::delayed_history; i < (most_recent ? kernels::delayed_history + 1 : state.size(0)); ++i)
    amax = std::max(amax, double{at(state, i)});
  set_scale(at(state, kernels::delayed_scale), at(state, kernels::delayed_inverse), amax, rule);
}

double scale_of(const View& scales, int which, int64_t row, int64_t column, Blocks blocks) {
  return scales ? double{at(scales, which, row / blocks.rows, column / blocks.columns)} : 1;
}

void quantize_matrix(View codes, View x, View scales, Blocks blocks, View counts) {
  const std::string_view format = codes.dtype == Dtype::f32 ? "tf32" : name_of(codes.dtype);
  const auto facts = std::ranges::find(float_formats, format, &FormatFacts::name);
  const double largest = facts == std::end(float_formats) ? INFINITY : facts->largest;
  int64_t too_large = 0, vanished = 0;
  for (const Index& i : Indices(x.shape)) {
    const double value = at(x, i);
    const float scaled = static_cast<float>(value) * static_cast<float>(scale_of(scales, 0, i[0], i[1], blocks));
    at(codes, i) = codes.dtype == Dtype::f32 ? float{tf32(scaled)} : scaled;
    too_large += std::abs(scaled) > largest;
    vanished += value != 0 && at(codes, i) == 0.0;
  }
  if (!counts) return;
  for (const auto& [place, count] : {std::pair{0, x.numel()}, {1, too_large}, {2, vanished}})
    at(counts, place).set_integer(at(counts, place).integer() + count);
}

void multiply(View y, View a, View a_scales, Blocks a_blocks, View b, View b_scales, Blocks b_blocks, float beta) {
  for (int64_t i = 0; i < y.size(0); ++i)
    for (int64_t j = 0; j < y.size(1); ++j) {
      double sum = 0;
      for (int64_t k = 0; k < a.size(1); ++k)
        sum +=
            at(a, i, k) * scale_of(a_scales, 1, i, k, a_blocks) * at(b, j, k) * scale_of(b_scales, 1, j, k, b_blocks);
      blend(at(y, i, j), sum, beta);
    }
}

const Install block_amax{kernels::block_amax, reference, find_largest};
const Install scale_from_amax{kernels::scale_from_amax, reference, scale_blocks};
const Install use_delayed_scale{kernels::use_delayed_scale, reference, take_delayed};
const Install update_delayed_scale{kernels::update_delayed_scale, reference, renew_delayed};
const Install quantize{kernels::quantize, reference, quantize_matrix};
const Install scaled_matmul{kernels::scaled_matmul, reference, multiply};

}  // namespace
}  // namespace cinta::oracle
