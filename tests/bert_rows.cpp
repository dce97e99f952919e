// A BERT that computes its last layer for some rows alone: the same numbers as from all rows, dropped elements and all.
// And what the padding token learns.
#include <catch2/catch.hpp>
#include <cmath>

#include "bert_helpers.h"
#include "cinta/autograd/autocast.h"
#include "cinta/backends/kernels/normalize.h"
#include "cinta/ops/attention.h"
#include "cinta/ops/dropout.h"
#include "cinta/ops/embedding.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/normalize.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"

using namespace cinta;
using namespace cinta::testing;
using models::BertForMaskedLM;
using models::TokenBatch;

namespace {

constexpr int64_t samples = 3, length = 12;

TokenBatch tokens(bool padded, Device device) {
  std::vector<int64_t> ids, types;
  for (int64_t i = 0; i < samples * length; ++i) {
    ids.push_back(1 + i * 7 % 60);
    types.push_back(i % length > 4);
  }
  TokenBatch out{from_values(ids, {samples, length}, device), from_values(types, {samples, length}, device)};
  if (padded) out.lengths = from_values<int32_t>({12, 7, 10}, {samples}, device);
  return out;
}

/// In no order and one twice; all exist with padding, too.
Tensor wanted_rows(Device device) { return from_values<int64_t>({3, 0, 12 + 6, 24 + 1, 3, 24 + 9, 12}, {7}, device); }

struct Found {
  Tensor logits;
  std::map<std::string, Tensor> gradients;
};

/// The logits of the wanted rows, and the gradients of a loss of them; computed for them `alone`, or for all.
Found run(bool alone, bool padded, double dropout, const std::string& checkpointing, Device device) {
  BertForMaskedLM model(small_config(dropout), 3, device);
  model.random().set_step(5);
  model.random().set_first_sample(2);
  model.set_checkpoint_policy(autograd::parse_checkpoint_policy(checkpointing));
  const TokenBatch batch = tokens(padded, device);
  const Tensor rows = wanted_rows(device);
  const Tensor logits = alone ? model(batch, rows) : gather_rows(model(batch), rows);
  autograd::backward(cross_entropy(logits, from_values<int64_t>({5, 9, 60, 1, 0, 8, 33}, {7}, device)));
  return {detach(logits), gradients(model)};
}

/// The operands of the norms at the ends of half layers, in the order in which they run.
struct NormWatch : RowWatcher {
  NormWatch() { watch_rows(cpu, this); }
  ~NormWatch() override { watch_rows(cpu, nullptr); }
  void before(const KernelRow& row, std::span<const View> views) override {
    if (&row != &kernels::residual_norm) return;
    shapes.push_back(views[0].shape);
    dtypes.push_back(views[0].dtype);
  }
  void after(const KernelRow&, std::span<const View>) override {}
  std::vector<Shape> shapes;
  std::vector<Dtype> dtypes;
};

void check_close(const Tensor& found, const Tensor& expected, double rounding) {
  const std::vector<double> a = to_vector<double>(found), b = to_vector<double>(expected);
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (double value : b) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < b.size(); ++i) REQUIRE(std::abs(a[i] - b[i]) <= rounding * (largest + 0.01));
}

}  // namespace

TEST_CASE("a BERT asked for some rows computes what it computes for all", "[bert_rows]") {
  for (Device device : {reference, cpu})
    for (bool padded : {false, true})
      for (double dropout : {0.0, 0.3}) {
        INFO(name_of(device) << (padded ? " padded" : "") << " dropout " << dropout);
        const Found found = run(true, padded, dropout, "none", device),
                    expected = run(false, padded, dropout, "none", device);
        check_close(found.logits, expected.logits, 256 * 0x1p-24);
        for (const auto& [name, gradient] : expected.gradients) {
          INFO(name);
          check_close(found.gradients.at(name), gradient, 256 * 0x1p-24);
        }
        for (const char* checkpointing : {"every:1", "sqrt", "selective:self_attention"}) {
          const Found again = run(true, padded, dropout, checkpointing, device);
          CHECK(to_vector<double>(again.logits) == to_vector<double>(found.logits));
          for (const auto& [name, gradient] : found.gradients)
            CHECK(to_vector<double>(again.gradients.at(name)) == to_vector<double>(gradient));
        }
      }
}

TEST_CASE("in a low type the residual of some rows stays f32, as that of all does", "[bert_rows]") {
  const autograd::AutocastScope types(autograd::Autocast{.low = Dtype::bf16});
  const BertForMaskedLM model(small_config(), 3);
  const TokenBatch batch = tokens(true, cpu);
  NormWatch watch;
  const Tensor some = model.bert(batch, wanted_rows(cpu)), all = reshape(model.bert(batch), {-1, 20});
  CHECK(watch.dtypes == std::vector<Dtype>(8, Dtype::f32));
  CHECK(to_vector<float>(some) == to_vector<float>(gather_rows(all, wanted_rows(cpu))));
}

TEST_CASE("both heads of pretraining read their rows of one last layer", "[bert_rows]") {
  for (Device device : {reference, cpu}) {
    const models::BertForPreTraining model(small_config(), 3, device);
    const TokenBatch batch = tokens(true, device);
    const auto some = model(batch, wanted_rows(device)), all = model(batch);
    check_close(some.masked, gather_rows(all.masked, wanted_rows(device)), 256 * 0x1p-24);
    check_close(some.next_sentence, all.next_sentence, 256 * 0x1p-24);
  }
}

TEST_CASE("no samples give no logits", "[bert_rows]") {
  const Tensor none = empty({0, length}, Dtype::i64);
  CHECK(models::BertForSequenceClassification(small_config(), 3)({none}).shape() == Shape{0, 3});
  CHECK(BertForMaskedLM(small_config(), 3)({none}, empty({0}, Dtype::i64)).shape() == Shape{0, 61});
}

TEST_CASE("rows that are no positions are refused", "[bert_rows]") {
  BertForMaskedLM model(small_config(0.1), 3);
  const models::BertForPreTraining both(small_config(), 3);
  const TokenBatch batch = tokens(false, cpu);
  const auto refused = [&](const Tensor& rows, const std::string& part) {
    for (bool training : {false, true}) {
      model.train(training);
      CHECK_THROWS_WITH(model(batch, rows), Catch::Contains(part));
    }
    CHECK_THROWS_WITH(both(batch, rows), Catch::Contains(part));
  };
  refused(from_values<int64_t>({1, 2}, {2, 1}), "[bert] rows[R], given i64[2,1]");
  refused(from_values<int64_t>({1}, {}), "[bert] rows[R], given i64[]");
  refused(from_values<int32_t>({1}, {1}), "[bert] rows are i64, given i32[1]");
  refused(from_values<int64_t>({1, samples * length}, {2}), "36");
  refused(from_values<int64_t>({-1}, {1}), "-1");
  CHECK_THROWS_WITH(models::BertForSequenceClassification(small_config(), 3)({}), Catch::Contains("[bert] ids[B,S]"));
}

TEST_CASE("of the last layer only the rows that are asked for are computed", "[bert_rows]") {
  const BertForMaskedLM model(small_config(), 3);
  NormWatch watch;
  CHECK(model.bert(tokens(false, cpu), wanted_rows(cpu)).shape() == Shape{7, 20});
  const Shape all{samples * length, 20}, some{7, 20};
  CHECK(watch.shapes == std::vector{all, all, some, some});
  CHECK(model.bert(tokens(false, cpu)).shape() == Shape{samples, length, 20});
  CHECK(model.bert(tokens(false, cpu), empty({0}, Dtype::i64)).shape() == Shape{0, 20});
}

TEST_CASE("a classifier computes its last layer for the first tokens", "[bert_rows]") {
  const models::BertForSequenceClassification model(small_config(), 3);
  NormWatch watch;
  CHECK(model(tokens(true, cpu)).shape() == Shape{samples, 3});
  CHECK(watch.shapes.back() == Shape{samples, 20});
}

TEST_CASE("a BERT without layers gives the rows of its embeddings", "[bert_rows]") {
  models::BertConfig config = small_config();
  config.num_hidden_layers = 0;
  const BertForMaskedLM model(config, 3);
  const Tensor all = reshape(model.bert(tokens(false, cpu)), {-1, 20});
  CHECK(to_vector<float>(model.bert(tokens(false, cpu), wanted_rows(cpu))) ==
        to_vector<float>(gather_rows(all, wanted_rows(cpu))));
}

TEST_CASE("dropout of some rows masks them as among all", "[bert_rows]") {
  const Random random(8);
  const DropoutSite whole = random.site("here", 0.4);
  const Tensor x = full({samples, length, 20}, 1.0), rows = wanted_rows(cpu);
  const Tensor expected = gather_rows(reshape(dropout(x, whole), {-1, 20}), rows);
  const Tensor some = full({7, 20}, 1.0);
  CHECK(to_vector<float>(dropout(some, whole.of_rows(rows, length))) == to_vector<float>(expected));
}

TEST_CASE("rows of a dropout that do not fit, or change, are refused", "[bert_rows]") {
  const Random random(8);
  const DropoutSite whole = random.site("here", 0.4);
  const Tensor x = full({7, 20}, 1.0), rows = wanted_rows(cpu);
  const std::string wants = "the dropout's rows are i64[7], one for each row of f32[7,20]";
  CHECK_THROWS_WITH(dropout(x, whole.of_rows(slice(rows, 0, 1, 7), length)), Catch::Contains(wants));
  CHECK_THROWS_WITH(dropout(x, whole.of_rows(cast(rows, Dtype::i32), length)), Catch::Contains(wants));
  CHECK_THROWS_AS(dropout(x, whole.of_rows(to(rows, reference), length)), DeviceError);
  const Tensor qkv = full({1, 7, 60}, 1.0);
  CHECK_THROWS_WITH(self_attention(qkv, 2, {.dropout = whole.of_rows(rows, length)}),
                    Catch::Contains("the dropout is of all rows"));

  Tensor tracked = full({7, 20}, 1.0);
  autograd::require_gradient(tracked);
  const Tensor loss = sum(dropout(tracked, whole.of_rows(rows, length)));
  fill_(rows, 0);
  CHECK_THROWS_WITH(autograd::backward(loss), Catch::Contains("the rows that are masked were changed by fill_"));
}

TEST_CASE("the padding token's vector learns nothing where it stands in a text", "[bert]") {
  const auto of_words = [](int64_t padding) {
    models::BertConfig config = small_config();
    config.pad_token_id = padding;
    models::BertForSequenceClassification model(config, 3);
    const TokenBatch batch = tokens(false, cpu);
    autograd::backward(cross_entropy(model(batch), from_values<int64_t>({0, 2, 1}, {samples})));
    return to_vector<float>(gradients(model).at("bert.embeddings.word_embeddings.weight"));
  };
  const std::vector<float> all = of_words(-1);
  std::vector<float> expected = all;
  const auto row = expected.begin() + 8 * small_config().hidden_size;  // 8 is among the tokens
  std::fill_n(row, small_config().hidden_size, 0.0f);
  CHECK(expected != all);
  CHECK(of_words(8) == expected);
}
