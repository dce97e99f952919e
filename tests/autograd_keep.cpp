// What becomes of saved tensors and results on the way: host offload, and the hunt for NaN.
#include <catch2/catch.hpp>
#include <cmath>

#include "bert_helpers.h"
#include "cinta/autograd/anomaly.h"
#include "cinta/autograd/checkpoint.h"
#include "cinta/autograd/offload.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/allocator.h"
#include "cinta/core/context.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/reduce.h"
#include "data_helpers.h"

using namespace cinta;
using namespace cinta::autograd;
using namespace cinta::testing;

namespace {

int64_t activation_bytes(Device device) {
  return memory_statistics(device).live[static_cast<size_t>(Category::activations)];
}

struct Outcome {
  std::vector<std::vector<float>> gradients;
  int64_t here, there;  // bytes of activations alive before backward
  int64_t here_at_most;
};

Outcome step(bool offload) {
  models::BertForMaskedLM model(small_config(0.1), 3);
  constexpr int64_t batch = 32, length = 12;
  std::vector<int64_t> ids, labels;
  for (int64_t i = 0; i < batch * length; ++i) {
    ids.push_back(1 + i * 37 % 60);
    labels.push_back(i % 5 == 0 ? i * 11 % 61 : -100);
  }
  const Tensor index = from_values(ids, {batch, length}), label = from_values(labels, {batch * length});
  const int64_t here = activation_bytes(cpu), there = activation_bytes(host);
  Outcome out;
  Tensor loss;
  {
    std::optional<OffloadScope> scope;
    if (offload) scope.emplace(host, 1024);
    loss = cross_entropy(model({.ids = index}), label);
  }
  out.here = activation_bytes(cpu) - here;
  out.there = activation_bytes(host) - there;
  context().pool(cpu)->reset_peak();
  backward(loss);
  loss = {};
  out.here_at_most = memory_statistics(cpu).peak[static_cast<size_t>(Category::activations)] - here;
  CHECK(activation_bytes(cpu) == here);
  CHECK(activation_bytes(host) == there);
  for (const optim::Parameter& parameter : model.parameters())
    out.gradients.push_back(to_vector<float>(gradient(parameter.tensor)));
  return out;
}

}  // namespace

TEST_CASE("offload moves what is saved, and gradients stay the same bit for bit", "[autograd][offload]") {
  const Outcome plain = step(false), moved = step(true);
  CHECK(moved.gradients == plain.gradients);
  CHECK(plain.there == 0);
  CHECK(moved.here <= plain.here / 5);
  CHECK(moved.there >= plain.here * 4 / 5);
  CHECK(moved.here_at_most < plain.here / 2);  // it comes back a piece at a time
}

TEST_CASE("offload copies a storage once, however many views of it are saved", "[autograd][offload]") {
  Tensor x = zeros({4096});
  require_gradient(x);
  const int64_t before = activation_bytes(host);
  Tensor y;
  {
    const OffloadScope scope(host);
    const Tensor h = x * 2.0;
    y = sum(h * h) + sum(slice(h, 0, 0, 2048) * slice(h, 0, 2048, 4096));
  }
  CHECK(activation_bytes(host) - before == 4 * 4096);
  backward(y);
}

TEST_CASE("offload keeps the values that were saved, also when they are overwritten later", "[autograd][offload]") {
  Tensor x = full({2048}, 3);
  require_gradient(x);
  Tensor h, y;
  {
    const OffloadScope scope(host);
    h = x * 1.0;
    y = sum(h * h);
    NoGrad off;
    fill_(h, 100);
  }
  backward(y);
  CHECK(to_vector<float>(gradient(x)) == std::vector<float>(2048, 6));
}

TEST_CASE("a gradient is written over no logits that another op reads", "[autograd][offload]") {
  const Tensor first = full({64}, 3, Dtype::i64), second = full({64}, 5, Dtype::i64);
  const auto gradient_of = [&](const auto& loss_of, bool offloads) {
    std::vector<float> numbers(64 * 64);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i));
    Tensor x = from_values(numbers, {64, 64});
    require_gradient(x);
    Tensor loss;
    {
      std::optional<OffloadScope> scope;
      if (offloads) scope.emplace(host, 1024);
      loss = loss_of(x * 2.0, scope);
    }
    backward(loss);
    return to_vector<float>(gradient(x));
  };
  const auto two_losses = [&](const Tensor& logits, auto&) {
    return cross_entropy(logits, first) + cross_entropy(logits, second);
  };
  const auto output_of_tanh = [&](const Tensor& z, auto&) { return cross_entropy(tanh(z), first); };
  const auto input_of_segment = [&](const Tensor& logits, std::optional<OffloadScope>& scope) {
    const Tensor squares = checkpoint([](const Tensor& in) { return sum(in * in); }, logits);
    scope.reset();  // the segment's input is offloaded, the loss keeps its logits here
    return cross_entropy(logits, first) + squares;
  };
  CHECK(gradient_of(two_losses, true) == gradient_of(two_losses, false));
  CHECK(gradient_of(output_of_tanh, true) == gradient_of(output_of_tanh, false));
  CHECK(gradient_of(input_of_segment, true) == gradient_of(input_of_segment, false));
}

TEST_CASE("a segment that was given an offloaded tensor and reads it by itself, too, finds it overwritten",
          "[autograd][offload]") {
  Tensor x = full({2048}, 3);
  require_gradient(x);
  const Tensor h = x * 1.0;
  Tensor y;
  {
    const OffloadScope scope(host);
    y = sum(checkpoint([h](const Tensor& in) { return in * h; }, h));
  }
  {
    NoGrad off;
    fill_(h, 100);
  }
  CHECK(error_of<ValueError>([&] { backward(y); }).find("was overwritten in place by fill_") != std::string::npos);
}

TEST_CASE("the hunt for NaN names the op and its place", "[autograd][anomaly]") {
  Tensor x = from_values(std::vector<float>{4, 0, -1, 1}, {4});
  require_gradient(x);
  SECTION("in forward") {
    const Tensor h = x * 2.0;
    const AnomalyScope scope;
    const std::string error = error_of<ValueError>([&] { sqrt(h); });
    const int line = __LINE__ - 1;
    INFO(error);
    CHECK(error.find("[sqrt] the output has 1 of 4 values that are NaN or infinite, the first at 2: f32[4]@cpu") == 0);
    CHECK(error.find("autograd_keep.cpp:" + std::to_string(line)) != std::string::npos);
  }
  SECTION("in backward, with the place of the forward") {
    const Tensor h = abs(x);
    const Tensor root = sqrt(h);  // finite, but its slope at 0 is not
    const int line = __LINE__ - 1;
    const Tensor y = sum(root);
    const AnomalyScope scope;
    const std::string error = error_of<ValueError>([&] { backward(y); });
    INFO(error);
    CHECK(error.find("[sqrt] a gradient made by the backward has 1 of 4 values") == 0);
    CHECK(error.find("the first at 1") != std::string::npos);
    CHECK(error.find("autograd_keep.cpp:" + std::to_string(line)) != std::string::npos);
  }
  SECTION("in a gradient that goes straight into a leaf") {
    const Tensor y = x * std::numeric_limits<double>::infinity();
    const AnomalyScope scope;
    CHECK(error_of<ValueError>([&] { backward(y, {.seeds = {full({4}, 1)}}); }).find("[affine] a gradient") == 0);
  }
  SECTION("in a model, by the name of the module") {
    models::BertForMaskedLM model(small_config(), 3);
    for (const models::NamedTensor& named : model.named_tensors())
      if (named.name == "bert.encoder.layer.1.intermediate.dense.bias") fill_(slice(named.tensor, 0, 5, 6), NAN);
    const AnomalyScope scope;
    const std::string error = error_of<ValueError>([&] {
      model({.ids = from_values(std::vector<int64_t>{1, 2, 3}, {1, 3})});
    });
    INFO(error);
    CHECK(error.find("[linear] the output has 3 of 72 values") == 0);
    CHECK(error.find("in bert.encoder.layer.1") != std::string::npos);
  }
  SECTION("beside one who watches already") {
    struct Count : Observer {
      int ops = 0;
      void forward(const char*, Where, std::span<const Tensor>) override { ++ops; }
      void backward(const Node&, std::span<const Tensor>) override {}
    } count;
    const Scoped watching(&Mode::observer, static_cast<Observer*>(&count));
    {
      const AnomalyScope scope;
      exp(x);
    }
    exp(x);
    CHECK(count.ops == 2);
  }
  CHECK(mode().observer == nullptr);
  sqrt(x);  // nobody watches any more
}

TEST_CASE("nothing is offloaded to where there is no memory", "[autograd][offload]") {
  const auto refused = [](Device to) { return error_of<DeviceError>([&] { const OffloadScope scope(to); }); };
  CHECK(refused(meta).find("[offload] ") == 0);
  CHECK(refused(meta).find("given meta, autograd_keep.cpp:") != std::string::npos);
  CHECK(refused(Device{max_backends - 1}).find("is not built; available: ") != std::string::npos);
  CHECK(mode().keeper == nullptr);

  Tensor x = full({2048}, 3, Dtype::f32, meta);  // a step that is planned
  require_gradient(x);
  Tensor y;
  const int64_t before = activation_bytes(host);
  {
    const OffloadScope scope(host);
    const Tensor h = x * 2.0;
    y = sum(h * h);
  }
  CHECK(activation_bytes(host) - before == 4 * 2048);
  backward(y);
  CHECK(gradient(x).device() == meta);
}
