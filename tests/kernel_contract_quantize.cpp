// Contracts of the rows behind narrow products.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/backends/kernels/quantize.h"
#include "cinta/core/format_facts.h"
#include "cinta/core/tensor.h"
#include "cinta/ops/shape.h"
#include "contract/contract.h"

using namespace cinta;
using namespace cinta::contract;

namespace {

using kernels::Blocks;

constexpr Dtype codes_of_8_bits[] = {Dtype::f8e4m3, Dtype::f8e5m2, Dtype::f8e4m3fnuz, Dtype::f8e5m2fnuz};

int64_t parts(int64_t size, int64_t of) { return std::max<int64_t>(1, (size + of - 1) / of); }
Shape grid(const Shape& x, Blocks blocks) { return {parts(x[0], blocks.rows), parts(x[1], blocks.columns)}; }

struct Matrix {
  Shape shape;
  Blocks blocks;
};
const Matrix matrices[] = {{{1, 1}, {1, 1}},         {{5, 7}, {5, 7}},         {{33, 700}, {33, 700}},
                           {{300, 3}, {300, 3}},     {{5, 300}, {1, 128}},     {{4, 128}, {1, 128}},
                           {{130, 257}, {128, 128}}, {{128, 256}, {128, 128}}, {{300, 600}, {300, 600}},
                           {{0, 4}, {1, 4}},         {{4, 0}, {4, 1}}};

void amax_contract() {
  for (const auto& [shape, blocks] : matrices)
    for (Dtype dtype : trained_types)
      for (Layout layout : contiguous_layouts)
        for (bool odd : {false, true}) {
          Trial trial(kernels::block_amax, join(dtype, shape, " blocks ", blocks.rows, "x", blocks.columns, odd));
          trial.accuracy.exact = true;
          const Handle x = trial.input(shape, dtype, odd ? special(shape.numel()) : uniform(shape, -3, 2), layout);
          const Handle largest = trial.output(grid(shape, blocks), Dtype::f32);
          trial.run([&](const Call& c) { kernels::block_amax(c.device, c(largest), c(x), blocks); });
        }
}

void scale_contract() {
  const Values amax{0, 1, 447.9, 448, 449, 1e-30, 3e-45, 0x1p-126, 3.4e38, 1.0 / 3, INFINITY, NAN};
  for (bool power_of_two : {false, true})
    for (int margin : {0, 1, -3, 64})
      for (float largest : {448.0f, 57344.0f, 240.0f, 0.0f}) {
        Trial trial(kernels::scale_from_amax, join(largest, " margin ", margin, power_of_two ? " powers of two" : ""));
        trial.accuracy.exact = true;
        const Handle in = trial.input({2, 6}, Dtype::f32, amax), out = trial.output({2, 2, 6}, Dtype::f32);
        trial.run([&](const Call& c) {
          kernels::scale_from_amax(c.device, c(out), c(in), {largest, power_of_two, margin});
        });
      }
}

void delayed_contract() {
  for (double amax : {0.0, 2.0, 9.0, double{INFINITY}, double{NAN}})
    for (double newest : {7.0, 0.0})
      for (bool stage : {false, true}) {
        Trial trial(kernels::use_delayed_scale, join("amax ", amax, " newest ", newest, stage ? " staged" : ""));
        trial.accuracy.exact = true;
        const Handle state = trial.both({5}, Dtype::f32, {64, 1.0 / 64, 3, newest, 0});
        const Handle found = trial.input({1, 1}, Dtype::f32, {amax}), out = trial.output({2, 1, 1}, Dtype::f32);
        trial.run([&](const Call& c) {
          kernels::use_delayed_scale(c.device, c(out), c(state), c(found), {448, false, 1}, stage);
        });
      }
  for (double staged : {0.0, 2.0, 9.0})
    for (bool most_recent : {false, true})
      for (int64_t history : {1, 2, 5})
        for (double factor : {-1.0, 0.0, 0.5}) {
          Trial trial(kernels::update_delayed_scale,
                      join("staged ", staged, " of ", history, most_recent ? " newest" : "", " factor ", factor));
          trial.accuracy.exact = true;
          Values values{64, 1.0 / 64, staged};
          for (int64_t i = 0; i < history; ++i) values.push_back(static_cast<double>(3 + i));
          const Handle state = trial.both({3 + history}, Dtype::f32, values);
          const Handle given = factor < 0 ? Handle{} : trial.input({1}, Dtype::f32, {factor});
          trial.run([&](const Call& c) {
            kernels::update_delayed_scale(c.device, c(state), c(given), {448, false, 1}, most_recent);
          });
        }
}

/// Scales that are no powers of two, and their inverses.
Values scales_of(int64_t count) {
  Values out;
  for (int64_t i = 0; i < count; ++i) out.push_back(3.7 + static_cast<double>(i));
  for (int64_t i = 0; i < count; ++i) out.push_back(1 / out[static_cast<size_t>(i)]);
  return out;
}

Shape scales_shape(const Shape& x, Blocks blocks) {
  const Shape blocks_of = grid(x, blocks);
  return {2, blocks_of[0], blocks_of[1]};
}

void quantize_contract() {
  for (const auto& [shape, blocks] : matrices)
    for (Dtype code : codes_of_8_bits)
      for (Dtype dtype : trained_types)
        for (bool odd : {false, true})
          for (bool scaled : {false, true}) {
            Trial trial(kernels::quantize, join(dtype, shape, " to ", code, " blocks ", blocks.rows, "x",
                                                blocks.columns, odd ? " special" : "", scaled ? " scaled" : ""));
            trial.accuracy.exact = true;
            const Handle x = trial.input(shape, dtype, odd ? special(shape.numel()) : uniform(shape, -300, 300));
            const Shape of_scales = scales_shape(shape, blocks);
            const Handle scales =
                scaled ? trial.input(of_scales, Dtype::f32, scales_of(of_scales.numel() / 2)) : Handle{};
            const Handle codes = trial.output(shape, code);
            trial.run([&](const Call& c) { kernels::quantize(c.device, c(codes), c(x), c(scales), blocks, {}); });
          }
}

void product_contract() {
  struct Sizes {
    int64_t m, n, k;
    Blocks a, b;
  };
  for (const auto& [m, n, k, a_blocks, b_blocks] : {Sizes{1, 1, 1, {1, 1}, {1, 1}},
                                                    {5, 7, 3, {5, 3}, {7, 3}},
                                                    {33, 20, 300, {33, 300}, {20, 300}},
                                                    {5, 140, 300, {1, 128}, {128, 128}},
                                                    {130, 9, 257, {1, 128}, {1, 128}},
                                                    {3, 4, 0, {3, 1}, {4, 1}},
                                                    {0, 4, 5, {1, 5}, {4, 5}}})
    for (const auto& [left, right] : {std::pair{Dtype::f8e4m3, Dtype::f8e4m3},
                                      {Dtype::f8e5m2, Dtype::f8e4m3},
                                      {Dtype::f8e5m2fnuz, Dtype::f8e4m3fnuz}})
      for (Dtype out : {Dtype::f32, Dtype::bf16})
        for (float beta : {0.0f, 1.0f})
          for (bool scaled : {false, true}) {
            Trial trial(kernels::scaled_matmul, join(m, "x", n, "x", k, " ", left, " ", right, " to ", out, " beta ",
                                                     beta, scaled ? " scaled" : ""));
            trial.accuracy.length = k;
            const auto scales = [&](const Shape& x, Blocks blocks) {
              const Shape shape = scales_shape(x, blocks);
              return scaled ? trial.input(shape, Dtype::f32, scales_of(shape.numel() / 2)) : Handle{};
            };
            const Shape a_shape{m, k}, b_shape{n, k}, y_shape{m, n};
            const Handle a = trial.input(a_shape, left, uniform(a_shape, -3, 3));
            const Handle a_scales = scales(a_shape, a_blocks),
                         b = trial.input(b_shape, right, uniform(b_shape, -3, 3, 2));
            const Handle b_scales = scales(b_shape, b_blocks);
            const Handle y =
                beta == 0 ? trial.output(y_shape, out) : trial.both(y_shape, out, uniform(y_shape, -3, 3, 3));
            trial.run([&, a_blocks = a_blocks, b_blocks = b_blocks](const Call& c) {
              kernels::scaled_matmul(c.device, c(y), c(a), c(a_scales), a_blocks, c(b), c(b_scales), b_blocks, beta);
            });
          }
}

const Contract amax_here{{&kernels::block_amax}, amax_contract};
const Contract scale_here{{&kernels::scale_from_amax}, scale_contract};
const Contract delayed_here{{&kernels::use_delayed_scale, &kernels::update_delayed_scale}, delayed_contract};
const Contract quantize_here{{&kernels::quantize}, quantize_contract};
const Contract product_here{{&kernels::scaled_matmul}, product_contract};

template <class Format>
void check_counts(Dtype code, Device device) {
  // Around the limits: the largest value and half the smallest, which is a tie that becomes 0.
  const float largest = Format::decode(Format::max_code), smallest = Format::decode(1);
  const std::vector<float> values{largest,
                                  std::nextafter(largest, INFINITY),
                                  -INFINITY,
                                  0.0f,
                                  -0.0f,
                                  smallest / 2,
                                  std::nextafter(smallest / 2, 1.0f),
                                  smallest,
                                  NAN,
                                  -smallest / 4,
                                  -2 * largest,
                                  1.0f};
  std::vector<uint8_t> codes(values.size());
  std::vector<int64_t> counts{100, 10, 1};
  const auto view = [](auto& of, const Shape& shape, Dtype dtype) {
    return View{const_cast<void*>(static_cast<const void*>(of.data())), shape, contiguous_strides(shape), dtype, true};
  };
  kernels::quantize(device, view(codes, {3, 4}, code), view(values, {3, 4}, Dtype::f32), {}, {3, 4},
                    view(counts, {3}, Dtype::i64));
  for (size_t i = 0; i < values.size(); ++i) CHECK(codes[i] == Format(values[i]).bits);
  CHECK(counts == std::vector<int64_t>{112, 13, 3});
}

}  // namespace

TEST_CASE("rows of narrow products keep their contracts", "[kernel_contract][fp8]") { check_contracts(); }

TEST_CASE("what is too large for a format and what vanishes in it is counted", "[kernel_contract][fp8]") {
  for (Device device : {cpu, reference}) {
    check_counts<f8e4m3>(Dtype::f8e4m3, device);
    check_counts<f8e5m2>(Dtype::f8e5m2, device);
    check_counts<f8e4m3fnuz>(Dtype::f8e4m3fnuz, device);
    check_counts<f8e5m2fnuz>(Dtype::f8e5m2fnuz, device);
    // TF32 has about the range of f32, whose largest numbers and smallest subnormal ones it has not.
    const float all_ones = std::bit_cast<float>(0xffffffffu), largest = 0x1.ffcp127f;
    const Tensor x = from_values(
                     std::vector<float>{1e-42f, -1e-42f, 1e-39f, all_ones, NAN, INFINITY, 3.4028235e38f, largest},
                     {2, 4}, device),
                 codes = empty({2, 4}, Dtype::f32, device), counts = zeros({3}, Dtype::i64, device);
    kernels::quantize(device, codes, x, {}, {2, 4}, counts);
    CHECK(to_vector<int64_t>(counts) == std::vector<int64_t>{8, 2, 2});
  }
}

TEST_CASE("scales whose product f32 cannot hold are multiplied in halves", "[kernel_contract][fp8]") {
  // 8 codes of 1 under inverses that are 2^-90 and 2^-50, then 2^100 and 2^60 with codes of 2^-9.
  for (const auto& [code, left, right, want] :
       {std::tuple{0x38, -90, -50, 8 * 0x1p-140}, {0x01, 100, 40, 8 * 0x1p122}, {0x38, -60, -50, 8 * 0x1p-110}}) {
    const std::vector<uint8_t> codes(8, static_cast<uint8_t>(code));
    const std::vector<float> a{std::ldexp(1.0f, -left), std::ldexp(1.0f, left)},
        b{std::ldexp(1.0f, -right), std::ldexp(1.0f, right)};
    float y = 0;
    const auto view = [](const auto* data, const Shape& shape, Dtype dtype) {
      return View{const_cast<void*>(static_cast<const void*>(data)), shape, contiguous_strides(shape), dtype, true};
    };
    const View matrix = view(codes.data(), {1, 8}, Dtype::f8e4m3);
    kernels::scaled_matmul(cpu, view(&y, {1, 1}, Dtype::f32), matrix, view(a.data(), {2, 1, 1}, Dtype::f32), {1, 8},
                           matrix, view(b.data(), {2, 1, 1}, Dtype::f32), {1, 8}, 0);
    CHECK(y == static_cast<float>(want));
  }
}

TEST_CASE("codes of f32 are TF32 numbers", "[kernel_contract][tf32]") {
  const Values odd = special(4000), plain = uniform(4000, -1e5, 1e5);
  for (const Values& from : {odd, plain}) {
    std::vector<float> values(from.begin(), from.end()), codes[2];
    for (Device device : {cpu, reference}) {
      auto& out = codes[device == cpu];
      out.resize(values.size());
      const Shape shape{40, 100};
      kernels::quantize(device, {out.data(), shape, contiguous_strides(shape), Dtype::f32, true},
                        {values.data(), shape, contiguous_strides(shape), Dtype::f32, true}, {}, {40, 100}, {});
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const float want = tf32(values[i]);
      CHECK((std::bit_cast<uint32_t>(codes[1][i]) == std::bit_cast<uint32_t>(want) || std::isnan(want)));
      CHECK((std::bit_cast<uint32_t>(codes[0][i]) == std::bit_cast<uint32_t>(want) || std::isnan(want)));
      CHECK(std::isnan(codes[1][i]) == std::isnan(want));
    }
  }
}
