// A tree of modules: tied parameters stay tied wherever they are moved or frozen, and paths are whole words.
#include "cinta/models/module.h"

#include <catch2/catch.hpp>

#include "bert_helpers.h"
#include "cinta/autograd/tape.h"
#include "cinta/models/layers.h"
#include "cinta/ops/reduce.h"
#include "cinta/optim/sgd.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

/// Two layers of one weight.
struct Tied : models::Module {
  models::Linear a{3, 3, {models::Init::normal, 1}}, b{3, 3, {models::Init::normal, 1}};
  Tied() {
    b.weight = a.weight;
    add_child("a", a);
    add_child("b", b);
    initialize(1);
  }
  bool are_one() const { return a.weight.storage() == b.weight.storage() && a.weight.slot == b.weight.slot; }
};

std::vector<bool> trainable(const models::Module& model) {
  std::vector<bool> out;
  for (const optim::Parameter& parameter : model.parameters()) out.push_back(autograd::tracked(parameter.tensor));
  return out;
}

}  // namespace

TEST_CASE("a tied parameter is one wherever it is moved, with its hooks", "[module]") {
  Tied model;
  int calls = 0;
  model.a.weight.slot->hooks.push_back([&](Tensor&) { ++calls; });
  for (const Device device : {cpu, reference, reference, cpu}) {
    const auto slot = model.a.weight.slot;
    const bool stays = model.a.weight.device() == device;
    const std::vector<float> before = to_vector<float>(model.a.weight);
    model.to(device);
    CHECK(model.a.weight.device() == device);
    CHECK(to_vector<float>(model.b.weight) == before);
    CHECK(model.are_one());
    CHECK((model.a.weight.slot == slot) == stays);
    CHECK(trainable(model) == std::vector<bool>(4, true));
  }
  autograd::backward(sum(model.b(full({2, 3}, 1))));
  CHECK(calls == 1);
  CHECK_NOTHROW(optim::Sgd(model.parameters()));
}

TEST_CASE("frozen parameters stay frozen where they are moved", "[module]") {
  Tied model;
  CHECK(model.set_trainable("a.bias", false) == 1);
  model.to(reference);
  CHECK(trainable(model) == std::vector<bool>{true, false, true, true});
}

TEST_CASE("a tied parameter is frozen and freed under all of its paths", "[module]") {
  Tied model;
  const auto slot = model.a.weight.slot;
  CHECK(model.set_trainable("", true) == 3);
  CHECK(model.a.weight.slot == slot);
  CHECK(model.set_trainable("b.weight", false) == 1);
  CHECK(trainable(model) == std::vector<bool>{false, true, false, true});
  CHECK(model.set_trainable("", false) == 3);
  CHECK(trainable(model) == std::vector<bool>(4, false));
  CHECK(model.set_trainable("", true) == 3);
  CHECK(model.are_one());
  CHECK(trainable(model) == std::vector<bool>(4, true));
  CHECK_NOTHROW(optim::Sgd(model.parameters()));
}

TEST_CASE("the elements of a tied parameter count once", "[module]") { CHECK(Tied().parameter_count() == 9 + 2 * 3); }

TEST_CASE("paths of parameters are whole words", "[module]") {
  models::BertConfig config = small_config(0);
  config.num_hidden_layers = 11;
  models::BertForMaskedLM model(config);
  const int in_layer = model.set_trainable("bert.encoder.layer.1", false);
  CHECK(in_layer == 12);  // four products and two norms
  for (const optim::Parameter& parameter : model.parameters())
    CHECK(autograd::tracked(parameter.tensor) != parameter.name.starts_with("bert.encoder.layer.1."));
  CHECK(model.set_trainable("bert.encoder.layer.1.", true) == in_layer);
  CHECK(model.set_trainable("bert.encoder.layer.0.attention.self", false) == 2);
  CHECK(model.set_trainable("bert.encoder.layer.0.attention.self.query", false) == 0);  // a part of one
  CHECK(model.set_trainable("bert.encoder.layer.0.attention.self.qkv.weight", true) == 1);
}
