// Narrow products: what linear layers multiply under each recipe, number by number; weights that are narrowed once,
// views of them; layers that are kept out; sizes and formats that hardware does not take.
#include "cinta/autograd/narrow_products.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "autocast_helpers.h"
#include "cinta/autograd/checkpoint.h"
#include "cinta/autograd/tape.h"
#include "cinta/backends/kernels/quantize.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "cinta/optim/sgd.h"
#include "data_helpers.h"
#include "narrow_helpers.h"

using namespace cinta;
using namespace cinta::autograd;
using namespace cinta::testing;

namespace {

/// The numbers that hardware is fed for x[rows, columns]: rounded in `Format` under the scale of their block.
template <class Format>
std::vector<double> fed(const Numbers& x, int64_t columns, int64_t block_rows, int64_t block_columns, bool powers,
                        bool scaled = true) {
  const auto rows = static_cast<int64_t>(x.size()) / columns;
  std::vector<double> out(x.size());
  for (int64_t i = 0; i < rows; i += block_rows)
    for (int64_t j = 0; j < columns; j += block_columns) {
      float amax = 0;
      const auto each = [&](auto f) {
        for (int64_t r = i; r < std::min(rows, i + block_rows); ++r)
          for (int64_t c = j; c < std::min(columns, j + block_columns); ++c) f(static_cast<size_t>(r * columns + c));
      };
      each([&](size_t at) { amax = std::max(amax, std::abs(x[at])); });
      float scale = !scaled || amax == 0 ? 1 : Format::decode(Format::max_code) / amax;
      if (powers) scale = std::exp2(std::floor(std::log2(scale)));
      each([&](size_t at) { out[at] = double{Format(x[at] * scale)} * double{1 / scale}; });
    }
  return out;
}

std::vector<double> turned(const std::vector<double>& x, size_t columns) {
  std::vector<double> out;
  for (size_t c = 0; c < columns; ++c)
    for (size_t r = c; r < x.size(); r += columns) out.push_back(x[r]);
  return out;
}
Numbers turned(const Numbers& x, size_t columns) {
  const std::vector<double> wide = turned(std::vector<double>(x.begin(), x.end()), columns);
  return {wide.begin(), wide.end()};
}

/// Checks got = a[m,k] b[n,k]^T, summed in f32 and rounded to a type of unit `u`.
void check_product(const Numbers& got, const std::vector<double>& a, const std::vector<double>& b, size_t k, double u) {
  const size_t m = a.size() / k, n = b.size() / k;
  REQUIRE(got.size() == m * n);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (size_t l = 0; l < k; ++l) sum += a[i * k + l] * b[j * k + l], size += std::abs(a[i * k + l] * b[j * k + l]);
      CHECK(std::abs(got[i * n + j] - sum) <= u * std::abs(sum) + 0x1p-24 * static_cast<double>(k + 4) * size);
    }
}

constexpr int64_t tokens = 144, wide = 160, narrow = 32;

}  // namespace

TEST_CASE("products are those of the numbers that hardware is fed", "[fp8]") {
  // From row to row magnitudes differ by more than a format spans: blocks along the other dimension lose what is small.
  Numbers x = spread(tokens * wide, 1, 20), dy = spread(tokens * narrow, 3, 1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::ldexp(x[i], -2 * static_cast<int>(i / wide % 12));
  for (size_t i = 0; i < dy.size(); ++i) dy[i] = std::ldexp(dy[i], -4 * static_cast<int>(i / narrow % 11));
  const Numbers w = spread(narrow * wide, 2, 0.1f);
  for (const char* recipe : {"current", "delayed", "block", "none"}) {
    INFO(recipe);
    const bool blocks = recipe[0] == 'b', scaled = recipe[0] != 'n';
    const int64_t all = 1 << 20, one = blocks ? 1 : all, side = blocks ? 128 : all;
    Tensor in = leaf(x, {tokens, wide}), weight = leaf(w, {narrow, wide});
    const Autocast types = types_of(recipe);
    const AutocastScope scope(types);
    const Tensor y = linear(in, weight);
    CHECK(y.dtype() == Dtype::bf16);
    const auto e4 = [&](const Numbers& of, int64_t columns, int64_t rows) {
      return fed<f8e4m3>(of, columns, rows, side, blocks, scaled);
    };
    const auto e5 = [&](const Numbers& of, int64_t columns) {
      return fed<f8e5m2>(of, columns, one, side, blocks, scaled);
    };
    check_product(values(y), e4(x, wide, one), e4(w, wide, side), wide, 0x1p-8);
    const Tensor seed = cast(from_values(dy, {tokens, narrow}), Dtype::bf16);
    const Numbers given = values(seed);
    backward(y, {.seeds = {seed}});
    CHECK(gradient(weight).dtype() == Dtype::f32);
    check_product(values(gradient(in)), e5(given, narrow), turned(e4(w, wide, side), wide), narrow, 0x1p-23);
    check_product(values(gradient(weight)), e5(turned(given, narrow), tokens), e4(turned(x, wide), tokens, one), tokens,
                  0x1p-23);
  }
}

TEST_CASE("a bias and an activation follow the product, rounded once each", "[fp8]") {
  const Tensor in = from_values(spread(32 * 16, 1, 2), {2, 16, 16});
  Tensor weight = leaf(spread(16 * 16, 2, 1), {16, 16}), bias = leaf(spread(16, 3, 1), {16});
  const AutocastScope scope(types_of("current"));
  const Numbers plain = values(linear(in, weight)), with = values(linear(in, weight, bias)),
                b = values(cast(bias, Dtype::bf16));
  for (size_t i = 0; i < with.size(); ++i)
    CHECK(std::abs(with[i] - (plain[i] + b[i % 16])) <= 0x1p-7 * (std::abs(plain[i]) + 1));
  CHECK(values(linear(in, weight, bias, Activation::gelu)) == values(gelu(linear(in, weight, bias))));
  backward(sum(linear(in, weight, bias)));
  CHECK(values(gradient(bias)) == Numbers(16, 32));
}

TEST_CASE("a weight is narrowed once a step, whatever reads it", "[fp8]") {
  struct Quantized : RowWatcher {
    int weights = 0, others = 0;
    void before(const KernelRow& row, std::span<const View> views) override {
      if (&row == &kernels::quantize) (views[1].size(0) == 48 ? weights : others)++;
    }
    void after(const KernelRow&, std::span<const View>) override {}
  } seen;
  const Tensor in = from_values(spread(16 * 32, 1, 1), {16, 32});
  Tensor weight = leaf(spread(48 * 32, 2, 1), {48, 32});
  optim::Sgd optimizer({{.name = "w", .tensor = weight}}, {.rate = 0.1});
  const Autocast types = types_of("delayed,history=4");
  watch_rows(cpu, &seen);
  for (int step = 1; step <= 3; ++step) {
    optimizer.zero_gradients();
    for (int micro = 0; micro < 4; ++micro) {
      const AutocastScope scope(types);
      backward(sum(linear(in, weight)));
    }
    optimizer.step();
    types.products->update();
    CHECK(seen.weights == step);
  }
  watch_rows(cpu, nullptr);
  CHECK(seen.others == 3 * 4 * 2);  // inputs and gradients
}

TEST_CASE("weights that are views are told apart, and followed when they are written", "[fp8]") {
  Tensor w = from_values(Numbers(32 * 16, 1), {32, 16});
  const Tensor x = from_values(Numbers(16 * 16, 1), {16, 16});
  const Autocast types = types_of("current");
  const AutocastScope scope(types);
  const NoGrad off;
  const Tensor low = slice(w, 0, 0, 16), high = slice(w, 0, 16, 32);
  fill_(high, 2);
  CHECK(values(linear(x, low)) == Numbers(256, 16));
  CHECK(values(linear(x, high)) == Numbers(256, 32));
  CHECK(values(linear(x, w)).back() == 32);
  const Tensor square = from_values(spread(256, 1, 1), {16, 16});
  const Numbers straight = values(linear(x, square)), turned = values(linear(x, transpose(square, 0, 1)));
  CHECK(straight != turned);
  CHECK(turned == values(linear(x, contiguous(transpose(square, 0, 1)))));
  fill_(square, 3);
  CHECK(values(linear(x, transpose(square, 0, 1))) == Numbers(256, 48));
  std::set<std::string> names;
  for (const auto& [name, state] : types.products->state()) CHECK(names.insert(name).second);
}

TEST_CASE("a checkpoint policy that keeps linear layers keeps narrow ones", "[fp8]") {
  Tensor weight = leaf(spread(256, 1, 1), {16, 16}), x = leaf(spread(256, 2, 1), {16, 16});
  const AutocastScope scope(types_of("current"));
  const auto segment = [&](std::span<const Tensor> in) { return std::vector<Tensor>{gelu(linear(in[0], weight))}; };
  backward(sum(segment(std::vector<Tensor>{x})[0]));
  const Numbers plain = values(gradient(weight));
  clear_gradient(weight);
  backward(sum(checkpoint_segment(segment, {x}, {"linear"})[0]));
  CHECK(values(gradient(weight)) == plain);
}

TEST_CASE("some layers are kept out, by path", "[fp8]") {
  const Autocast types = types_of("current,wide=model.head,wide=model.layers.0");
  const Tensor x = from_values(spread(16 * 16, 1, 3), {16, 16}), w = from_values(spread(16 * 16, 2, 1), {16, 16});
  const auto at = [&](const char* path) {
    const NameScope place(path);
    const AutocastScope scope(types);
    return values(linear(x, w));
  };
  const AutocastScope scope(Autocast{.low = Dtype::bf16});
  const Numbers plain = values(linear(x, w));
  for (const char* path : {"model.head", "model.layers.0", "model.layers.0.inner"}) CHECK(at(path) == plain);
  for (const char* path : {"model", "model.heads", "model.layers.1"}) CHECK(at(path) != plain);
  CHECK_NOTHROW(types.products->update());
  {
    Autocast both = types_of("current");
    both.modules = {{"model.head"}};
    const AutocastScope narrow_scope(both);
    const NameScope place("model.head");
    CHECK(linear(x, w).dtype() == Dtype::f32);
    CHECK(both.products->take_counts().empty());
  }
  const Autocast misspelt = types_of("current,wide=model.haed");
  {
    const AutocastScope narrow_scope(misspelt);
    const NameScope place("model.head");
    linear(x, w);
  }
  CHECK_THAT(error_of<ValueError>([&] { misspelt.products->update(); }),
             Catch::Contains("[fp8] a linear layer at or below wide=model.haed") && Catch::Contains("model.head"));
}

TEST_CASE("sizes that tensor cores do not take are filled up or refused", "[fp8]") {
  const Tensor x = from_values(Numbers(15 * 16, 1), {15, 16}), w = from_values(Numbers(16 * 16, 1), {16, 16});
  const auto run = [&](const char* recipe, const Tensor& in, const Tensor& weight) {
    const AutocastScope scope(types_of(recipe));
    linear(in, weight);
  };
  CHECK_NOTHROW(run("current", x, w));
  CHECK_NOTHROW(run("current,sizes=refuse", w, w));
  CHECK_NOTHROW(run("current", from_values(Numbers{}, {0, 16}), w));
  CHECK_THAT(error_of<ShapeError>([&] { run("current,sizes=refuse", x, w); }),
             Catch::Contains("[linear] sizes are multiples of 16, given m, n, k = 15, 16, 16"));
  CHECK_THAT(error_of<ShapeError>([&] { run("block,sizes=refuse", w, w); }), Catch::Contains("multiples of 128"));
}

TEST_CASE("recipes that cannot be are refused by name", "[fp8]") {
  const auto fault = [](std::string_view text) {
    try {
      NarrowProducts products{parse_product_recipe(text)};
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(fault("block,gradient=e4m3") == "");
  CHECK(fault("delayed,history=7,amax=recent,margin=1,wide=a,wide=b") == "");
  CHECK(fault("none,forward=e4m3fnuz,gradient=e5m2fnuz") == "");
  CHECK_THAT(fault("current,forward=e5m2"), Catch::Contains("f8e5m2 x f8e5m2 does not exist on this hardware: use "));
  CHECK_THAT(fault("forward=e4m3fnuz"), Catch::Contains("f8e4m3fnuz x f8e5m2 does not exist"));
  CHECK_THAT(fault("delayed,history=0"), Catch::Contains("a history of at least one step, given 0"));
  CHECK_THAT(fault("delayed,history=1048577"), Catch::Contains("at most 2^20 steps"));
  CHECK_THAT(fault("delayed,history=99999999999999999999"), Catch::Contains("history=N"));
  for (const char* text : {"delayed,margin=65", "delayed,margin=-2147483648"})
    CHECK_THAT(fault(text), Catch::Contains("a margin from -64 to 64"));
  for (const char* text : {"history=7", "block,history=7", "current,amax=recent", "history=2,delayed"})
    CHECK_THAT(fault(text), Catch::Contains("is for delayed scales alone"));
  for (const char* text : {"block,margin=1", "none,margin=1"})
    CHECK_THAT(fault(text), Catch::Contains("margin is for current and delayed scales"));
  CHECK_THAT(fault("delayed,history=3,history=4"), Catch::Contains("history is given twice"));
  for (const char* text : {"", "later", "current,", "delayed,history=x", "delayed,amax=none", "delayed,current",
                           "current,wide=", "current,forward=f32", "current=1"})
    CHECK_THAT(fault(text), Catch::Contains("none, current, delayed or block"));
}
