// Narrow products: what linear layers multiply under each recipe, number by number; scales from step to step; weights
// that are narrowed once; infinities that stay visible; sizes and formats that hardware does not take.
#include "cinta/autograd/narrow_products.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "autocast_helpers.h"
#include "cinta/autograd/tape.h"
#include "cinta/backends/kernels/quantize.h"
#include "cinta/core/random.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "cinta/optim/sgd.h"
#include "data_helpers.h"

using namespace cinta;
using namespace cinta::autograd;
using namespace cinta::testing;

namespace {

using Numbers = std::vector<float>;

Numbers spread(int64_t count, uint32_t stream, float width) {
  Numbers out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(width * (2 * to_uniform(random_word(5, stream, 0, static_cast<uint64_t>(i))) - 1));
  return out;
}

Autocast types_of(std::string_view recipe) {
  return {.products = std::make_shared<NarrowProducts>(parse_product_recipe(recipe))};
}

Tensor leaf(const Numbers& values, const Shape& shape) {
  Tensor out = from_values(values, shape);
  return require_gradient(out);
}

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
  const Numbers x = spread(tokens * wide, 1, 20), w = spread(narrow * wide, 2, 0.1f),
                dy = spread(tokens * narrow, 3, 1e-3f);
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

TEST_CASE("tf32 rounds what linear layers multiply, and nothing else", "[fp8][tf32]") {
  const Numbers x = spread(5 * 7, 1, 3), w = spread(3 * 7, 2, 1);
  const auto rounded = [](const Numbers& of) {
    std::vector<double> out;
    for (float value : of) out.push_back(float{tf32(value)});
    return out;
  };
  const Tensor in = from_values(x, {5, 7}), weight = leaf(w, {3, 7}), bias = from_values(Numbers{1, 2, 3}, {3});
  const ProductRecipe recipe{.scaling = ProductScaling::none, .forward = Dtype::f32, .gradient = Dtype::f32};
  const AutocastScope scope(Autocast{.low = Dtype::f32, .products = std::make_shared<NarrowProducts>(recipe)});
  const Tensor y = linear(in, weight);
  CHECK(y.dtype() == Dtype::f32);
  check_product(values(y), rounded(x), rounded(w), 7, 0x1p-24);
  CHECK(values(y) != values(matmul(in, transpose(weight, 0, 1))));
  CHECK(values(linear(in, weight, bias, Activation::relu)) == values(relu(y + bias)));
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

TEST_CASE("delayed scales follow the steps before", "[fp8]") {
  const auto run = [](const char* recipe, const Numbers& magnitudes) {
    const Autocast types = types_of(recipe);
    const Tensor weight = from_values(Numbers(16 * 16, 1), {16, 16});
    for (float magnitude : magnitudes) {
      const AutocastScope scope(types);
      linear(from_values(Numbers(16 * 16, magnitude), {16, 16}), weight);
      types.products->update();
    }
    for (const auto& [name, state] : types.products->state())
      if (name == "fp8.linear.input") return to_vector<float>(state);
    return Numbers{};
  };
  CHECK(run("delayed,history=3", {2, 8, 4}) == Numbers{56, 1 / 56.0f, 0, 4, 8, 2});
  CHECK(run("delayed,history=3", {8, 4, 2, 1}) == Numbers{112, 1 / 112.0f, 0, 1, 2, 4});
  CHECK(run("delayed,history=3,amax=recent", {2, 8, 4}) == Numbers{112, 1 / 112.0f, 0, 4, 8, 2});
  CHECK(run("delayed,history=1,margin=1", {2, 8, 4}) == Numbers{56, 1 / 56.0f, 0, 4});
  // No magnitude, and one that is no number, leave the scale alone.
  CHECK(run("delayed,history=2", {7, 0, INFINITY, NAN}) == Numbers{64, 1 / 64.0f, 0, 7, 0});
}

TEST_CASE("evaluation moves no scale and is not counted", "[fp8]") {
  const Autocast types = types_of("delayed,history=2");
  const Tensor x = from_values(spread(16 * 16, 1, 3), {16, 16});
  Tensor weight = leaf(spread(16 * 16, 2, 1), {16, 16});
  {
    const NoGrad off;
    const AutocastScope scope(types);
    linear(x, weight);
  }
  types.products->update();
  for (const auto& [name, state] : types.products->state())
    for (double value : to_vector<double>(state)) CHECK((value == 0 || value == 1));
  const AutocastScope scope(types);
  linear(x, weight);
  types.products->update();
  const auto counts = types.products->take_counts();
  REQUIRE(counts.size() == 1);
  CHECK(counts[0].layer == "linear");
  CHECK(counts[0].of[NarrowProducts::input].elements == 256);
  CHECK(counts[0].of[NarrowProducts::weight].elements == 256);
  CHECK(counts[0].of[NarrowProducts::gradient].elements == 0);
  CHECK(types.products->take_counts()[0].of[NarrowProducts::input].elements == 0);
}

TEST_CASE("what was no number does not become one by saturation", "[fp8]") {
  for (const char* recipe : {"current", "delayed", "block", "none"}) {
    INFO(recipe);
    const Autocast types = types_of(recipe);
    const AutocastScope scope(types);
    const Tensor x = from_values(Numbers(256 * 16, 1), {256, 16});
    for (float bad : {INFINITY, NAN}) {
      Tensor weight = leaf(Numbers(16 * 16, 1), {16, 16});
      Numbers dy(256 * 16, 1);
      dy[17] = -bad;
      const Tensor y = linear(x, weight);
      backward(y, {.seeds = {cast(from_values(dy, {256, 16}), Dtype::bf16)}});
      CHECK(std::isnan(item(sum(gradient(weight)))));
      types.products->update();
    }
  }
}

TEST_CASE("scales go on where they were after loading", "[fp8]") {
  const Tensor x = from_values(spread(16 * 16, 1, 3), {16, 16});
  Tensor weight = leaf(spread(16 * 16, 2, 1), {16, 16}), other = leaf(spread(16 * 16, 3, 1), {16, 16});
  const auto step = [&](const Autocast& types, double factor) {
    const AutocastScope scope(types);
    const NameScope place("block");
    const Tensor y = linear(linear(affine(x, factor, 0), weight), other);
    backward(sum(y));
    types.products->update();
    return values(y);
  };
  const Autocast types = types_of("delayed,history=3"), resumed = types_of("delayed,history=3"),
                 longer = types_of("delayed,history=5"), current = types_of("current");
  step(types, 1);
  step(types, 4);
  std::vector<std::pair<std::string, Tensor>> state;
  for (const auto& [name, tensor] : types.products->state()) {
    const Tensor copy = empty_like(tensor);
    copy_bytes(copy, tensor);
    state.emplace_back(name, copy);
  }
  CHECK(state.size() == 8);
  CHECK(state[4].first == "fp8.block#2.counts");
  resumed.products->load_state(state);
  longer.products->load_state(state);
  current.products->load_state(state);
  CHECK(resumed.products->state().size() == 8);  // kept for layers that have not run yet
  const Numbers uninterrupted = step(types, 2);
  CHECK(step(resumed, 2) == uninterrupted);
  CHECK(step(longer, 2) == uninterrupted);
  CHECK(step(types, 1) == step(resumed, 1));
  CHECK(step(current, 2) == step(types_of("current"), 2));
  state[0].second = from_values(Numbers{0, 1, 0, 1}, {4});
  CHECK_THAT(error_of<ValueError>([&] {
               resumed.products->load_state({{"fp8.block.input", state[0].second}});
             }),
             Catch::Contains("[fp8] state fp8.block.input is f32 with a positive scale"));
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
  CHECK(fault("history=7") == "");
  CHECK(fault("none,forward=e4m3fnuz,gradient=e5m2fnuz") == "");
  CHECK_THAT(fault("current,forward=e5m2"), Catch::Contains("f8e5m2 x f8e5m2 does not exist on this hardware: use "));
  CHECK_THAT(fault("forward=e4m3fnuz"), Catch::Contains("f8e4m3fnuz x f8e5m2 does not exist"));
  CHECK_THAT(fault("delayed,history=0"), Catch::Contains("a history of at least one step, given 0"));
  CHECK_THAT(fault("delayed,margin=65"), Catch::Contains("margin"));
  for (const char* text : {"", "later", "current,", "current,history=x", "current,amax=none", "history=2,current",
                           "current,wide=", "current,forward=f32", "current=1"})
    CHECK_THAT(fault(text), Catch::Contains("none, current, delayed or block"));
}
