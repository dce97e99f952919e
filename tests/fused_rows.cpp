// Where a backend lacks a fused row, the op that would call it is run as the ops that it is written with: the same
// numbers, to rounding, and the same errors.
#include <catch2/catch.hpp>
#include <cmath>

#include "autocast_helpers.h"
#include "bert_helpers.h"
#include "cinta/backends/captured_step.h"
#include "cinta/models/mlp.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/attention.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/normalize.h"
#include "cinta/ops/reduce.h"
#include "cinta/optim/adamw.h"
#include "cinta/optim/sgd.h"
#include "cinta/train/precision.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

/// While alive, the CPU has none of these rows.
class Without {
 public:
  explicit Without(std::vector<KernelRow*> rows) : rows_(std::move(rows)) {
    for (KernelRow* row : rows_) row->leave_out(cpu, true);
  }
  ~Without() {
    for (KernelRow* row : rows_) row->leave_out(cpu, false);
  }
  Without(const Without&) = delete;

 private:
  std::vector<KernelRow*> rows_;
};

std::vector<KernelRow*> fused_rows() {
  std::vector<KernelRow*> rows;
  for (KernelRow* row : kernel_table())
    if (row->is_fused()) rows.push_back(row);
  return rows;
}

/// Each of them alone, and all.
std::vector<std::vector<KernelRow*>> choices() {
  std::vector<std::vector<KernelRow*>> out{fused_rows()};
  for (KernelRow* row : fused_rows()) out.push_back({row});
  return out;
}

struct Found {
  double loss = 0;
  std::map<std::string, Tensor> gradients;
};

enum class Lengths { full, padded, packed };

/// A BERT's loss on masked tokens, and its gradients.
Found run(Lengths lengths, double dropout, const std::string& precision) {
  models::BertForMaskedLM model(small_config(dropout), 3);
  model.random().set_step(5);
  std::vector<int64_t> ids, types, places;
  for (int64_t i = 0; i < 3 * 12; ++i) {
    ids.push_back(1 + i * 7 % 60);
    types.push_back(i % 12 > 4);
    places.push_back(i < 12 ? i : i < 19 ? i - 12 : i % 12);
  }
  const Shape shape = lengths == Lengths::packed ? Shape{1, 36} : Shape{3, 12};
  models::TokenBatch batch{from_values(ids, shape), from_values(types, shape)};
  if (lengths == Lengths::padded) batch.lengths = from_values<int32_t>({12, 7, 10}, {3});
  if (lengths == Lengths::packed) {
    batch.offsets = from_values<int32_t>({0, 12, 19, 29}, {4});
    batch.places = from_values(places, shape);
  }
  const Tensor rows = from_values<int64_t>({3, 0, 12 + 6, 24 + 1, 2, 24 + 3, 12}, {7});
  const autograd::AutocastScope scope(train::parse_precision(precision));
  const Tensor loss = cross_entropy(model(batch, lengths == Lengths::packed ? Tensor() : rows),
                                    lengths == Lengths::packed ? from_values(std::vector<int64_t>(36, 7), {36})
                                                               : from_values<int64_t>({5, 9, 60, -100, 0, 8, 33}, {7}),
                                    {.label_smoothing = 0.1});
  autograd::backward(loss);
  return {item(loss), gradients(model)};
}

void check_close(const Found& found, const Found& expected, double rounding) {
  CHECK(std::abs(found.loss - expected.loss) <= rounding * expected.loss);
  for (const auto& [name, gradient] : expected.gradients) {
    INFO(name);
    const auto a = to_vector<double>(found.gradients.at(name)), b = to_vector<double>(gradient);
    double distance = 0, largest = 0;
    for (size_t i = 0; i < b.size(); ++i) {
      distance = std::max(distance, std::abs(a[i] - b[i]));
      largest = std::max(largest, std::abs(b[i]));
    }
    CHECK(distance <= rounding * (largest + 0.01));
  }
}

}  // namespace

TEST_CASE("a BERT's step without any fused row has the same loss and gradients", "[fused_rows]") {
  REQUIRE(fused_rows().size() >= 16);
  for (const Lengths lengths : {Lengths::full, Lengths::padded, Lengths::packed})
    for (const double dropout : {0.0, 0.3})
      for (const auto& [precision, rounding] : {std::pair{"fp32", 256 * 0x1p-24}, {"bf16", 8 * 0x1p-8}}) {
        const Found expected = run(lengths, dropout, precision);
        for (const auto& rows : choices()) {
          INFO(precision << " lengths " << static_cast<int>(lengths) << " dropout " << dropout << " without "
                         << (rows.size() == 1 ? rows[0]->name() : "any"));
          const Without without(rows);
          check_close(run(lengths, dropout, precision), expected, rounding);
        }
      }
}

TEST_CASE("an op without its fused row refuses what it refuses with it", "[fused_rows]") {
  const auto refused = [](auto call) {
    std::string what;
    try {
      call();
    } catch (const Error& error) {
      what = error.what();
    }
    return what.substr(0, what.find('\n'));
  };
  const Tensor logits = spread({3, 5}, 1), wrong = from_values<int64_t>({1, 7, -100}, {3}),
               right = from_values<int64_t>({1, 4, -100}, {3});
  const auto bad_label = [&] { cross_entropy(logits, wrong, {}, Where()); };
  const auto bad_gain = [&] { layer_norm(logits, full({4}, 1), {}, 1e-5, Where()); };
  const std::string label = refused(bad_label), gain = refused(bad_gain);
  CHECK_THAT(label, Catch::Contains("index 7 at position 1"));
  CHECK_THAT(gain, Catch::Contains("gain"));
  const Without without(fused_rows());
  CHECK(refused(bad_label) == label);
  CHECK(refused(bad_gain) == gain);
  CHECK(refused([&] { cross_entropy(logits, right); }).empty());
}

// No BERT calls rms_norm, or attention of three tensors. The scores lie beyond what f16 holds.
TEST_CASE("rms_norm and attention without their rows are the same", "[fused_rows]") {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
    INFO(name_of(dtype));
    const auto results = [&] {
      std::vector<std::vector<float>> out;
      const auto leaf = [&](const Shape& shape, uint32_t stream, double factor) {
        Tensor out = detach(cast(spread(shape, stream) * factor, dtype));
        return autograd::require_gradient(out);
      };
      const Tensor x = leaf({5, 12}, 1, 1), gain = leaf({12}, 2, 1);
      const Tensor q = leaf({2, 3, 7, 8}, 3, 300), k = leaf({2, 3, 7, 8}, 4, 300), v = leaf({2, 3, 7, 8}, 5, 1);
      for (const Tensor& y : {rms_norm(x, gain, 1e-5), attention(q, k, v, {.causal = true, .scale = 1e-4})}) {
        out.push_back(values(cast(detach(y), Dtype::f32)));
        autograd::backward(sum(y * cast(spread(y.shape(), 6), dtype)));
      }
      for (const Tensor& leaf : {x, gain, v}) out.push_back(values(cast(autograd::gradient(leaf), Dtype::f32)));
      return out;
    };
    const auto expected = results();
    const Without without(fused_rows());
    const auto found = results();
    const double unit = dtype == Dtype::f32 ? 256 * 0x1p-24 : dtype == Dtype::f16 ? 8 * 0x1p-11 : 8 * 0x1p-8;
    for (size_t i = 0; i < found.size(); ++i) {
      double largest = 0;
      for (const float value : expected[i]) largest = std::max(largest, std::abs(double{value}));
      for (size_t j = 0; j < found[i].size(); ++j) REQUIRE(std::abs(found[i][j] - expected[i][j]) <= unit * largest);
    }
  }
}

TEST_CASE("rows of gradients are missed where gradients are made alone", "[fused_rows]") {
  for (KernelRow* row : fused_rows())
    if (row->name() == std::string("layer_norm_backward")) {
      const Without without({row});
      struct Count : RowWatcher {
        Count() { watch_rows(cpu, this); }
        ~Count() override { watch_rows(cpu, nullptr); }
        void before(const KernelRow& row, std::span<const View>) override {
          calls += row.name() == std::string("layer_norm");
        }
        void after(const KernelRow&, std::span<const View>) override {}
        int calls = 0;
      } count;
      const Tensor plain = spread({3, 5}, 1);
      Tensor trained = spread({3, 5}, 1);
      autograd::require_gradient(trained);
      layer_norm(plain, {}, {});
      CHECK(count.calls == 1);
      layer_norm(trained, {}, {});
      CHECK(count.calls == 1);
    }
}

TEST_CASE("updates without their sweeps are the same, and skip what they skip", "[fused_rows]") {
  const auto train = [](const std::string& rule) {
    models::Mlp model({12, 20, 7, 10}, 3);
    std::vector<optim::Parameter> parameters = model.parameters();
    parameters[1].rate_factor = 0.5f;
    std::unique_ptr<optim::Optimizer> optimizer;
    if (rule == "adamw")
      optimizer = std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.rate = 0.01, .weight_decay = 0.1});
    else
      optimizer = std::make_unique<optim::Sgd>(
          parameters,
          optim::SgdOptions{
              .rate = 0.1, .momentum = rule == "sgd" ? 0 : 0.9, .weight_decay = 0.1, .nesterov = rule == "nesterov"});
    optimizer->keep_shadows(Dtype::bf16);
    std::vector<std::vector<float>> out;
    for (int step = 0; step < 6; ++step) {
      optimizer->zero_gradients();
      const Tensor x = step == 3 ? full({9, 12}, INFINITY) : spread({9, 12}, static_cast<uint32_t>(step));
      autograd::backward(cross_entropy(model(x), full({9}, step, Dtype::i64)));
      optimizer->step({.max_norm = 0.5});
      for (const optim::Unit& unit : optimizer->units())
        for (const optim::Group& group : unit.groups()) {
          out.push_back(values(group.weights));
          out.push_back(values(cast(group.shadow, Dtype::f32)));
        }
    }
    for (const auto& [name, tensor] : optimizer->state())
      if (tensor.dtype() == Dtype::f32) out.push_back(values(tensor));
    return out;
  };
  for (const char* rule : {"adamw", "sgd", "momentum", "nesterov"}) {
    INFO(rule);
    const auto expected = train(rule);
    const Without without(fused_rows());
    const auto found = train(rule);
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const double rounding = i % 2 && i < 12 ? 0x1p-8 : 256 * 0x1p-24;  // shadows lie between
      for (size_t j = 0; j < found[i].size(); ++j)
        REQUIRE(std::abs(found[i][j] - expected[i][j]) <= rounding * (std::abs(expected[i][j]) + 0.01));
    }
    CHECK(found[6] == found[4]);  // the step that was skipped
    CHECK(found[8] != found[6]);
  }
}

TEST_CASE("a row that is not fused is missed by name", "[fused_rows]") {
  for (KernelRow* row : kernel_table())
    if (row->name() == std::string("relu")) {
      const Without without({row});
      CHECK_THROWS_WITH(relu(full({3}, 1)), Catch::Contains("the kernel relu is not implemented by backend cpu"));
    }
  CHECK(values(relu(full({2}, -1))) == std::vector<float>{0, 0});
}

TEST_CASE("an MLP's step without fused rows is captured like any other", "[fused_rows]") {
  const Without without(fused_rows());
  models::Mlp model({12, 20, 7, 10}, 3);
  const Tensor x = spread({9, 12}, 1), labels = full({9}, 4, Dtype::i64);
  Tensor loss;
  const auto step = [&] {
    for (const optim::Parameter& parameter : model.parameters()) autograd::clear_gradient(parameter.tensor);
    loss = cross_entropy(model(x), labels);
    autograd::backward(loss);
  };
  step();
  const std::vector<float> plain = values(loss);
  CapturedStep captured(cpu, step);
  captured.replay();
  CHECK(values(loss) == plain);
}
