// The recipe "Add a technique" of CONTRIBUTING.md, followed: what ops save for backward lies in memory as bf16. The
// class is the whole technique and is shown there word for word; the rest proves what it does and what it leaves alone.
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>

#include "cinta/autograd/checkpoint.h"
#include "cinta/autograd/mode.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/context.h"
#include "cinta/models/mlp.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "contract/tolerance.h"

using namespace cinta;
using namespace cinta::autograd;

namespace {

/// While alive, the f32 tensors that ops on this thread save lie in memory as bf16: half the bytes, 8 bits of each
/// value. Inside another keeper's scope it has no effect.
class SaveAsBf16 : Keeper, Scoped<Keeper*> {
 public:
  SaveAsBf16() : Scoped(&Mode::keeper, mode().keeper ? mode().keeper : this) {}

 private:
  struct Narrow : Hole {
    explicit Narrow(const Tensor& tensor) : kept(cast(tensor, Dtype::bf16)) {}
    Tensor fill(int, Where) override {
      const NoGrad off;
      return cast(kept, Dtype::f32);
    }
    Tensor kept;
  };
  std::pair<std::shared_ptr<Hole>, int> keep(const Tensor& tensor) override {
    if (tensor.dtype() != Dtype::f32) return {};
    const NoGrad off;
    return {std::make_shared<Narrow>(tensor), 0};
  }
};

int64_t activation_bytes() { return memory_statistics(cpu).live[static_cast<size_t>(Category::activations)]; }

/// `count` values spread over [low, high), the same each time.
std::vector<float> spread(int64_t count, double low, double high) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<float>(low + (high - low) * std::fmod(0.5 + 0.618033988749895 * double(i), 1.0)));
  return out;
}

struct Outcome {
  std::vector<float> gradient;
  int64_t saved;  // bytes alive between forward and backward
};

constexpr int64_t count = 4096;
constexpr int layers = 3;

/// exp(exp(exp(x))): each op saves its own output y, and its gradient is dy * y.
Outcome tower(bool narrow, bool segment = false) {
  Tensor x = from_values(spread(count, -2, 0), {count});
  require_gradient(x);
  const int64_t before = activation_bytes();
  const auto function = [narrow](Tensor y) {
    std::optional<SaveAsBf16> scope;
    if (narrow) scope.emplace();
    for (int i = 0; i < layers; ++i) y = exp(y);
    return sum(y);
  };
  const Tensor loss = segment ? checkpoint(function, x) : function(x);
  Outcome out;
  out.saved = activation_bytes() - before;
  backward(loss);
  out.gradient = to_vector<float>(gradient(x));
  return out;
}

/// Bytes that a perceptron's forward leaves alive for its backward.
int64_t saved_by_perceptron(bool narrow) {
  models::Mlp mlp({256, 512, 256}, 7, Activation::gelu);
  const int64_t before = activation_bytes();
  Tensor loss;
  {
    std::optional<SaveAsBf16> scope;
    if (narrow) scope.emplace();
    loss = sum(mlp(from_values(spread(64 * 256, -1, 1), {64, 256})));
  }
  return activation_bytes() - before;
}

}  // namespace

TEST_CASE("the technique of the recipe halves what is saved", "[recipe]") {
  constexpr int64_t result = 512;  // the loss, in the smallest block there is
  const Outcome plain = tower(false), narrow = tower(true);
  CHECK(plain.saved == layers * count * 4 + result);
  CHECK(narrow.saved == layers * count * 2 + result);
  const int64_t saved = saved_by_perceptron(false) - result;
  CHECK(saved == 4 * 64 * (256 + 512 + 512));  // the input, what goes into gelu and what comes out
  CHECK(saved_by_perceptron(true) - result == saved / 2);
}

TEST_CASE("the gradients of the recipe's technique are off by roundings to bf16", "[recipe]") {
  // The gradient is a product of one saved factor a layer. A factor's rounding to bf16 is a factor 1 + d, |d| <= once;
  // the products are rounded in f32 on both sides (one more factor covers 1 / (1 - d) > 1 + d).
  const double once = contract::rounding_unit(Dtype::bf16), product = contract::rounding_unit(Dtype::f32);
  const double allowed = std::pow(1 + once, layers) * std::pow(1 + product, 2 * layers + 1) - 1;
  const std::vector<float> want = tower(false).gradient, got = tower(true).gradient;
  double largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    INFO(i << ": " << got[i] << " for " << want[i]);
    CHECK(std::abs(got[i] - want[i]) <= allowed * want[i]);
    largest = std::max(largest, std::abs(got[i] - want[i]) / double(want[i]));
  }
  CHECK(largest > once);  // and they were rounded, more than one of the factors
}

TEST_CASE("the technique of the recipe leaves alone what is not in its scope", "[recipe]") {
  const std::vector<float> before = tower(false).gradient;
  const Outcome narrow = tower(true);
  CHECK(mode().keeper == nullptr);
  CHECK(tower(false).gradient == before);
  CHECK(tower(true, true).gradient == before);  // inside a segment the segment is in charge, and is exact
  {
    const SaveAsBf16 scope;
    CHECK(tower(false).gradient == narrow.gradient);
    CHECK(tower(true).saved == narrow.saved);  // the inner of two scopes has no effect
  }
  CHECK(mode().keeper == nullptr);
}
