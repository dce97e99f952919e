// Rows of the op table: softmax and the losses.
#include <catch2/catch.hpp>
#include <limits>

#include "cinta/autograd/tape.h"
#include "cinta/core/allocator.h"
#include "cinta/core/context.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "cinta/ops/softmax.h"
#include "data_helpers.h"
#include "op_table.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

using In = const Operands&;

const Input x = real({batch, 2, 6}, -4, 4), labels = whole({batch, 2}, 0, 6);

Tensor log_softmax_by_hand(const Tensor& x) { return x - logsumexp(x, {-1}, true); }

/// Cross entropy by hand for labels in [0, 6), none ignored but `ignored`.
Tensor cross_entropy_by_hand(In x, double smoothing, int64_t ignored) {
  const Tensor log_p = log_softmax_by_hand(x[0]), y = x[1], device_zero = full({}, 0, x[0].dtype(), x[0].device());
  Tensor loss = device_zero;
  for (int64_t c = 0; c < 6; ++c) {
    const Tensor log_pc = squeeze(slice(log_p, -1, c, c + 1), -1);
    const Tensor hit = equal(y, full({}, static_cast<double>(c), y.dtype(), y.device()));
    loss = loss - cinta::where(hit, log_pc, device_zero) * (1 - smoothing) - log_pc * (smoothing / 6);
  }
  return cinta::where(equal(y, full({}, static_cast<double>(ignored), y.dtype(), y.device())), device_zero, loss);
}

OpCase cross_entropy_case(const char* variant, CrossEntropyOptions options) {
  options.ignore_index = 2;
  return OpCase(
             "cross_entropy", {x, labels}, [options](In x) { return cross_entropy(x[0], x[1], options); }, variant)
      .composed([options](In x) {
        const Tensor rows = cross_entropy_by_hand(x, static_cast<float>(options.label_smoothing), 2);
        if (options.reduction == Reduction::none) return rows;
        return options.reduction == Reduction::sum ? sum(rows) : sum(rows) / count_items(x[1], 2, rows.dtype());
      });
}

const OpTable table({
    OpCase("softmax", {x}, [](In x) { return softmax(x[0]); }).composed([](In x) {
      return exp(log_softmax_by_hand(x[0]));
    }),
    {"softmax", {x}, [](In x) { return softmax(x[0], 1); }, "middle dimension"},
    OpCase("log_softmax", {x}, [](In x) { return log_softmax(x[0]); }).composed([](In x) {
      return log_softmax_by_hand(x[0]);
    }),
    {"log_softmax", {x}, [](In x) { return log_softmax(x[0], 1); }, "middle dimension"},

    cross_entropy_case("rows", {.reduction = Reduction::none}),
    cross_entropy_case("sum", {.reduction = Reduction::sum}),
    cross_entropy_case("mean", {}),
    cross_entropy_case("smooth", {.label_smoothing = 0.1, .reduction = Reduction::none}),
    cross_entropy_case("smooth mean", {.label_smoothing = 0.3}),
    {"cross_entropy", {real({5}), whole({}, 0, 5)}, [](In x) { return cross_entropy(x[0], x[1]); }, "one row"},
    OpCase("count_items", {labels}, [](In x) { return count_items(x[0], 2); }).untracked(),
    OpCase("count_correct", {x, labels}, [](In x) { return count_correct(x[0], x[1]); }).untracked(),

    OpCase("mse", {x, x}, [](In x) { return mse(x[0], x[1], Reduction::sum); }).composed([](In x) {
      return sum(pow(x[0] - x[1], 2));
    }),
    {"mse", {real({3, 4}), real({3, 4})}, [](In x) { return mse(x[0], x[1]); }, "mean"},
    {"mse", {x, x}, [](In x) { return mse(x[0], x[1], Reduction::none); }, "rows"},
    OpCase("bce_with_logits", {x, real({batch, 2, 6}, 0, 1)},
           [](In x) { return bce_with_logits(x[0], x[1], Reduction::none); })
        .composed([](In x) { return -(x[1] * log(sigmoid(x[0])) + (1.0 * -x[1] + 1.0) * log(-sigmoid(x[0]) + 1.0)); }),
    {"bce_with_logits", {real({3, 4}), real({3, 4}, 0, 1)}, [](In x) { return bce_with_logits(x[0], x[1]); }, "mean"},
    OpCase("kl_div", {x, x}, [](In x) { return kl_div(x[0], x[1], Reduction::none); }).composed([](In x) {
      return sum(exp(x[0]) * (x[0] - x[1]), {-1});
    }),
    {"kl_div", {real({3, 4}), real({3, 4})}, [](In x) { return kl_div(log_softmax(x[0]), log_softmax(x[1])); }, "mean"},
});

}  // namespace

// Of one f32 a logsumexp around 1e4 has three digits behind the point.
TEST_CASE("the gradient of a cross entropy is exact however large the logits are", "[ops]") {
  for (const Device device : {cpu, reference})
    for (const float shift : {0.0f, 1000.0f, -1000.0f, 1e5f, 0x1p23f, 1e20f}) {
      Tensor logits = from_values(std::vector<float>{shift + 3, shift, shift - 4, shift + 1}, {1, 4}, device);
      const std::vector<float> x = to_vector<float>(logits);
      autograd::require_gradient(logits);
      const Tensor loss = cross_entropy(logits, from_values<int64_t>({1}, {1}, device));
      autograd::backward(loss);
      double sum = 0;
      for (float one : x) sum += std::exp(double{one} - x[0]);
      CHECK(item(loss) == Approx(double{x[0]} - x[1] + std::log(sum)).epsilon(8 * 0x1p-23));
      const std::vector<float> found = to_vector<float>(autograd::gradient(logits));
      for (size_t j = 0; j < 4; ++j)
        CHECK(found[j] ==
              Approx(std::exp(double{x[j]} - x[0]) / sum - (j == 1 ? 1 : 0)).epsilon(8 * 0x1p-23).margin(0x1p-30));
    }
}

TEST_CASE("softmax and losses", "[ops]") { check_ops(); }

TEST_CASE("cross entropy without a real item is 0, and so is its gradient", "[ops]") {
  for (Device device : {cpu, reference}) {
    Tensor logits = full({2, 3}, 1, Dtype::f32, device);
    autograd::require_gradient(logits);
    const Tensor loss = cross_entropy(logits, full({2}, -100, Dtype::i64, device));
    CHECK(item(loss) == 0);
    autograd::backward(loss);
    CHECK(to_vector<double>(autograd::gradient(logits)) == std::vector<double>(6, 0));
  }
}

TEST_CASE("the gradient of a cross entropy takes the place of logits that nobody else sees", "[ops]") {
  Context own;
  const ContextScope scope(own);
  const Shape shape{40, 300};
  const Tensor labels = full({40}, 7, Dtype::i64);
  int64_t in_place = 0, elsewhere = 0;  // blocks of memory asked for
  const auto walk = [&](bool held, bool retained) {
    Tensor x = full(shape, 0.5);
    autograd::require_gradient(x);
    Tensor logits = x * 2.0, loss = cross_entropy(logits, labels);
    if (!held) logits = {};
    const int64_t before = memory_statistics(cpu).requests;
    autograd::backward(loss, {.retain_graph = retained});
    (held || retained ? elsewhere : in_place) = memory_statistics(cpu).requests - before;
    if (held) CHECK(to_vector<float>(logits) == std::vector<float>(static_cast<size_t>(shape.numel()), 1));
    const std::vector<float> once = to_vector<float>(autograd::gradient(x));
    if (retained) {
      autograd::clear_gradient(x);
      autograd::backward(loss);
      CHECK(to_vector<float>(autograd::gradient(x)) == once);
    }
    return once;
  };
  const std::vector<float> gradient = walk(false, false);
  CHECK(walk(true, false) == gradient);
  CHECK(elsewhere == in_place + 1);
  CHECK(walk(false, true) == gradient);
  CHECK(elsewhere == in_place + 1);
}

TEST_CASE("a label out of range is thrown with op and place", "[ops]") {
  for (Device device : {cpu, reference}) {
    const Tensor logits = full({3, 4}, 1, Dtype::f32, device), labels = from_values<int64_t>({1, 4, 2}, {3}, device);
    const std::string error = error_of<ValueError>([&] { cross_entropy(logits, labels); });
    CHECK(error.find("[cross_entropy] index 4 at position 1 is outside [0, 4)") == 0);
    CHECK(error.find("ops_softmax.cpp:") != std::string::npos);
    context().check_status(device);  // the report was cleared
  }
}

TEST_CASE("a class without probability adds nothing to kl_div", "[ops]") {
  for (Device device : {cpu, reference}) {
    Tensor log_p = from_values<float>({0, -INFINITY}, {1, 2}, device),
           log_q = from_values<float>({-1, -INFINITY}, {1, 2}, device);
    autograd::require_gradient(log_q);
    const Tensor loss = kl_div(log_p, log_q);
    CHECK(item(loss) == 1);
    autograd::backward(loss);
    CHECK(to_vector<double>(autograd::gradient(log_q)) == std::vector<double>{-1, 0});
  }
}

TEST_CASE("a label that is ignored is not counted, whatever its number", "[ops]") {
  constexpr int64_t last = std::numeric_limits<int64_t>::max();
  for (Device device : {cpu, reference})
    for (const int64_t ignored : {int64_t{-100}, last, last - 1, -last - 1, (int64_t{1} << 53) + 1}) {
      const Tensor logits = from_values<float>({1, 2, 3, 3, 0, 0}, {2, 3}, device);
      const auto loss = [&](std::vector<int64_t> labels, Reduction reduction) {
        return item(
            cross_entropy(logits, from_values(labels, {2}, device), {.ignore_index = ignored, .reduction = reduction}));
      };
      CHECK(loss({1, ignored}, Reduction::mean) == loss({1, ignored}, Reduction::sum));
      CHECK(item(count_items(from_values<int64_t>({1, ignored}, {2}, device), ignored, Dtype::f32)) == 1);
    }
}
