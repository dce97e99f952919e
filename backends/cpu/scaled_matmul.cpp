// Scales, and products of scaled codes: on the CPU codes are brought back to f32, exactly, and multiplied there.
#include <algorithm>
#include <array>
#include <cmath>

#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/backends/kernels/quantize.h"
#include "cinta/core/context.h"
#include "cinta/core/tensor.h"

namespace cinta {
namespace {

using kernels::Blocks;
using kernels::ScaleRule;

void set_scale(float& scale, float& inverse, float amax, ScaleRule rule) {
  scale = 1;
  if (rule.largest > 0 && amax > 0 && std::isfinite(amax)) {
    scale = std::ldexp(rule.largest / amax, -rule.margin);
    if (rule.power_of_two && std::isfinite(scale)) scale = std::ldexp(1.0f, std::ilogb(scale));
    scale = std::clamp(scale, 0x1p-126f, 0x1p126f);
  }
  inverse = std::isfinite(amax) ? 1 / scale : NAN;
}

void scale_blocks(View scales, View amax, ScaleRule rule) {
  float* out = scales.as<float>();
  for (int64_t i = 0; i < amax.numel(); ++i) set_scale(out[i], out[amax.numel() + i], amax.as<const float>()[i], rule);
}

void take_delayed(View scales, View state, View amax, ScaleRule rule, bool stage) {
  const float largest = *amax.as<const float>();
  float *out = scales.as<float>(), *held = state.as<float>();
  out[0] = held[kernels::delayed_scale];
  out[1] = std::isfinite(largest) ? held[kernels::delayed_inverse] : NAN;
  if (held[kernels::delayed_history] == 0) set_scale(out[0], out[1], largest, rule);
  if (stage && std::isfinite(largest)) held[kernels::delayed_staged] = std::max(held[kernels::delayed_staged], largest);
}

void renew_delayed(View state, View factor, ScaleRule rule, bool most_recent) {
  float *held = state.as<float>(), *history = held + kernels::delayed_history, *end = held + state.numel();
  if (factor && *factor.as<const float>() == 0) held[kernels::delayed_staged] = 0;
  if (held[kernels::delayed_staged] == 0) return;
  std::move_backward(history, end - 1, end);
  *history = std::exchange(held[kernels::delayed_staged], 0.0f);
  const float amax = most_recent ? *history : *std::max_element(history, end);
  set_scale(held[kernels::delayed_scale], held[kernels::delayed_inverse], amax, rule);
}

template <class Code>
constexpr std::array<float, 256> decoded = [] {
  std::array<float, 256> out{};
  for (int code = 0; code < 256; ++code) out[static_cast<size_t>(code)] = Code::decode(static_cast<uint8_t>(code));
  return out;
}();

/// What codes mean, in f32: times the inverse scales where there are several, times `factor` where there is one.
template <class Code>
Tensor bring_back(const View& codes, const View& scales, Blocks blocks, float factor) {
  const int64_t columns = codes.size(1);
  const bool several = scales && scales.size(1) * scales.size(2) > 1;
  CategoryScope scope(Category::workspace);
  const Tensor out = empty(codes.shape);
  float* to = out.view().as<float>();
  const auto* from = codes.as<const uint8_t>();
  parallel_for(codes.size(0), rows_of_tile(columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t block = 0; block * blocks.columns < columns; ++block) {
        const int64_t last = std::min(columns, (block + 1) * blocks.columns);
        float inverse = factor;
        if (several)
          inverse =
              scales
                  .as<const float>()[scales.stride(0) + i / blocks.rows * scales.stride(1) + block * scales.stride(2)];
        for (int64_t k = block * blocks.columns; k < last; ++k)
          to[i * columns + k] = decoded<Code>[from[i * columns + k]] * inverse;
      }
  });
  return out;
}

Tensor bring_back(const View& codes, const View& scales, Blocks blocks, float factor) {
  return visit(codes.dtype, [&]<class T>() -> Tensor {
    if constexpr (!std::is_arithmetic_v<T> && sizeof(T) == 1) return bring_back<T>(codes, scales, blocks, factor);
    require<DtypeError>(false, "scaled_matmul", Where(), "codes of 8 bits, given ", codes.dtype);
    return {};
  });
}

/// The factor of a whole matrix.
float factor(const View& scales) {
  return scales && scales.size(1) * scales.size(2) == 1 ? scales.as<const float>()[scales.stride(0)] : 1;
}

void multiply(View y, View a, View a_scales, Blocks a_blocks, View b, View b_scales, Blocks b_blocks, float beta) {
  // The product of two factors goes behind the sum, where it rounds once; one that f32 cannot hold goes in halves.
  float before = 1, behind = factor(a_scales) * factor(b_scales);
  if (!std::isnormal(behind) && !std::isnan(behind)) before = factor(a_scales), behind = factor(b_scales);
  Tensor left, right;
  if (a.numel() > 0) a = left = bring_back(a, a_scales, a_blocks, before);
  if (b.numel() > 0) b = right = bring_back(b, b_scales, b_blocks, 1);
  kernels::matmul(cpu, y, a, b.transposed(), behind, beta);
}

const Install scale_from_amax{kernels::scale_from_amax, cpu, scale_blocks};
const Install use_delayed_scale{kernels::use_delayed_scale, cpu, take_delayed};
const Install update_delayed_scale{kernels::update_delayed_scale, cpu, renew_delayed};
const Install scaled_matmul{kernels::scaled_matmul, cpu, multiply};

}  // namespace
}  // namespace cinta
