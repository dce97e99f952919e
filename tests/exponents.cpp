// Exponents of a step: counted exactly, a row for each tensor of the model, however the step is computed, and drawn.
#include "cinta/train/exponents.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "bert_helpers.h"
#include "cinta/autograd/checkpoint.h"
#include "cinta/autograd/tape.h"
#include "cinta/models/layers.h"
#include "cinta/models/mlp.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/reduce.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::testing;
using train::Exponents;

namespace {

/// Two products at one path and a sum, whose gradient is that of both of its uses.
struct Residual : models::Module {
  Residual() {
    add_child("first", first);
    add_child("second", second);
    initialize(1);
  }
  Tensor operator()(const Tensor& x) const {
    const NameScope scope("layer.0");
    const Tensor a = first(x);
    return second(a) + a;
  }
  models::Linear first{4, 4, {}}, second{4, 4, {}};
};

Tensor halves(int64_t rows) { return from_values(std::vector<float>(static_cast<size_t>(rows * 4), 0.5f), {rows, 4}); }

/// How many numbers each row counts, by kind and name; each row is there once.
std::map<std::string, int64_t> totals(const std::vector<Exponents>& found) {
  std::map<std::string, int64_t> out;
  for (const Exponents& one : found) {
    const bool first = out.emplace(join(name_of(one.kind), " ", one.name), one.total()).second;
    CHECK(first);
  }
  return out;
}

/// Of a step of two micro-batches of a BERT with dropout.
std::vector<Exponents> bert_step(const char* policy) {
  models::BertForMaskedLM model(small_config(0.1), 3);
  model.set_checkpoint_policy(autograd::parse_checkpoint_policy(policy));
  model.random().set_step(7);
  train::ExponentWatch watch(model);
  for (int64_t shift : {0, 1}) {
    std::vector<int64_t> ids, labels;
    for (int64_t i = 0; i < 4 * 12; ++i) {
      ids.push_back(1 + (i + shift) * 37 % 60);
      labels.push_back(i % 5 == 0 ? i * 11 % 61 : -100);
    }
    const models::TokenBatch tokens{.ids = from_values(ids, {4, 12}),
                                    .lengths = from_values(std::vector<int32_t>{12, 3, 7, 12}, {4})};
    autograd::backward(cross_entropy(model(tokens), from_values(labels, {48})));
  }
  return watch.take();
}

}  // namespace

TEST_CASE("exponents are counted, and what a format would lose", "[exponents]") {
  Exponents one;
  one.add(from_values(std::vector<float>{1, 1.99f, -2, 0, -0.0f, INFINITY, NAN, 0x1p-70f, 0x1p60f, 0x1p-10f}, {10}));
  const auto at = [&](int exponent) { return one.counts[static_cast<size_t>(exponent - Exponents::least)]; };
  CHECK(at(0) == 2);
  CHECK(at(1) == 1);
  CHECK(at(-10) == 1);
  CHECK(at(Exponents::least) == 1);  // and all below
  CHECK(at(Exponents::most) == 1);
  CHECK(one.zeros == 2);
  CHECK(one.not_finite == 2);
  CHECK(one.total() == 8);
  CHECK(one.vanishing(-9) == Approx(1 / 8.0));  // 2^-10 is half of the least number, and rounds up or to even
  CHECK(one.vanishing(-8) == Approx(2 / 8.0));
  CHECK(one.saturating(8) == Approx(1 / 8.0));
  CHECK(one.saturating(0) == Approx(2 / 8.0));
}

TEST_CASE("each tensor of a step has a row: values, gradients, every parameter", "[exponents]") {
  const Residual model;
  train::ExponentWatch watch(model);
  autograd::backward(sum(model(halves(3))));
  autograd::backward(sum(model(halves(2))));  // another micro-batch: the same tensors
  std::map<std::string, int64_t> wanted;
  for (const char* kind : {"values", "gradients"})
    for (const char* name : {"linear", "linear 2", "add"}) wanted[join(kind, " layer.0/", name)] = (3 + 2) * 4;
  for (const char* kind : {"weights", "gradients of weights"})
    for (const char* name : {"first", "second"}) {
      wanted[join(kind, " ", name, ".weight")] = 4 * 4;
      wanted[join(kind, " ", name, ".bias")] = 4;
    }
  CHECK(totals(watch.take()) == wanted);
}

TEST_CASE("a gradient's row is of the sum of what all uses of the tensor hand back", "[exponents]") {
  const Residual model;
  for (const optim::Parameter& one : model.parameters())  // the second layer doubles: 2 + 1 of each gradient
    if (one.name == "second.weight") {
      Tensor weight = one.tensor;
      for (int64_t i = 0; i < 16; ++i) weight.data<float>()[i] = i % 5 == 0 ? 2.0f : 0.0f;
    }
  train::ExponentWatch watch(model);
  autograd::backward(sum(model(halves(3)) * 2.0));
  for (const Exponents& one : watch.take())
    if (one.kind == Exponents::gradient && one.name == "layer.0/linear")
      CHECK(one.counts[static_cast<size_t>(2 - Exponents::least)] == 3 * 4);  // 2 * 3 = 6
}

TEST_CASE("what checkpointing runs again makes no rows and counts in none", "[exponents]") {
  const std::string plain = train::json_of({{1, bert_step("none")}});
  CHECK(totals(bert_step("none")).contains("values bert.encoder.layer.1/residual_norm 2"));
  for (const char* policy : {"every:1", "every:2", "selective:self_attention,linear"})
    CHECK(train::json_of({{1, bert_step(policy)}}) == plain);
}

TEST_CASE("exponents are read as they were written, and a file that is no such is told", "[exponents]") {
  const Scratch scratch;
  const std::string path = scratch / "exponents.json", text = train::json_of({{1, bert_step("none")}, {7, {}}});
  write_bytes(path, text);
  CHECK(train::json_of(train::read_exponents(path)) == text);
  const auto swapped = [&](const std::string& from, const std::string& to) {
    return std::string(text).replace(text.find(from), from.size(), to);
  };
  for (const std::string& damaged :
       {std::string("{}"), std::string("[]"), text.substr(0, text.size() / 2),
        swapped("\"counts\":[", "\"counts\":[0,"), swapped("\"values\"", "\"else\""),
        swapped("\"least_exponent\":-60", "\"least_exponent\":-50"),
        swapped("\"zeros\":", "\"zeros\":\"many\",\"more\":"), swapped("\"step\":1", "\"step\":null")}) {
    write_bytes(path, damaged);
    CHECK_THROWS_WITH(train::read_exponents(path), Catch::Contains(path));
  }
}
