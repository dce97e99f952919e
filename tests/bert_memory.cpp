// What a training step of BERT asks of the machine: nothing once warm, and nothing at all on the meta device, where the
// largest model is planned by its shapes.
#include <catch2/catch.hpp>

#include "bert_helpers.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/allocator.h"
#include "cinta/core/context.h"
#include "cinta/ops/loss.h"
#include "cinta/optim/adamw.h"

using namespace cinta;
using namespace cinta::models;
using namespace cinta::testing;

namespace {

/// A batch of one size whose content changes from step to step.
struct Feed {
  Device device;
  int64_t vocabulary, batch, length, rows;

  template <class F>
  Tensor make(const Shape& shape, F value) const {
    if (device == meta) return empty(shape, Dtype::i64, device);
    std::vector<int64_t> out;
    for (int64_t i = 0; i < shape.numel(); ++i) out.push_back(value(i));
    return from_values(out, shape, device);
  }
  Tensor loss(const BertForMaskedLM& model, int64_t step) const {
    const TokenBatch tokens{.ids = make({batch, length}, [&](int64_t i) { return 1 + (i * 37 + step) % 60; })};
    const Tensor where = make({rows}, [&](int64_t i) { return (i * 5 + step) % (batch * length); }),
                 labels = make({rows}, [&](int64_t i) { return (i * 11 + step) % vocabulary; });
    return cross_entropy(model(tokens, where), labels);
  }
};

}  // namespace

TEST_CASE("a warm training step asks the machine for no memory", "[bert]") {
  const ThreadScope one(1);  // a further thread's workspace grows when it first gets a tile, which may be late
  for (const char* policy : {"none", "sqrt"}) {
    INFO(policy);
    BertForMaskedLM model(small_config(0.1), 3);
    model.set_checkpoint_policy(autograd::parse_checkpoint_policy(policy));
    optim::AdamW optimizer(model.parameters());
    const Feed feed{cpu, 61, 8, 12, 20};
    auto step = [&](int64_t number) {
      optimizer.zero_gradients();
      model.random().set_step(number);
      autograd::backward(feed.loss(model, number));
      optimizer.step({.max_norm = 1.0});
    };
    step(0);
    step(1);
    const MemoryStatistics warm = memory_statistics(cpu);
    for (int64_t number = 2; number < 6; ++number) step(number);
    const MemoryStatistics after = memory_statistics(cpu);
    CHECK(after.system_requests == warm.system_requests);
    CHECK(after.requests > warm.requests);  // the pool was at work
    CHECK(after.live == warm.live);
    CHECK(after.peak_total == warm.peak_total);
  }
}

TEST_CASE("a training step of the largest BERT is planned on the meta device", "[bert]") {
  context().status(meta);  // made at first use, and stays
  const MemoryStatistics before = memory_statistics(meta), before_cpu = memory_statistics(cpu);
  auto bytes = [&](Category category, const auto& counts) {
    return counts[static_cast<size_t>(category)] - before.live[static_cast<size_t>(category)];
  };
  constexpr int64_t batch = 8, length = 512;
  int64_t activations = 0;
  for (const char* policy : {"none", "every:1"}) {
    INFO(policy);
    BertForMaskedLM model(BertConfig::named("large"), 0, meta);
    model.set_checkpoint_policy(autograd::parse_checkpoint_policy(policy));
    CHECK(model.parameter_count() == 335'174'458);
    const int64_t weights = 4 * model.parameter_count();
    optim::AdamW optimizer(model.parameters());
    optimizer.zero_gradients();
    context().pool(meta)->reset_peak();
    const Feed feed{meta, 30522, batch, length, batch * 77};
    const Tensor loss = feed.loss(model, 0);
    const int64_t kept = bytes(Category::activations, memory_statistics(meta).live);
    autograd::backward(loss);
    optimizer.step({.max_norm = 1.0});
    const MemoryStatistics now = memory_statistics(meta);

    // Flat buffers round each parameter up to 64 elements, and the pool its blocks up by an eighth at most.
    auto about = [](int64_t found, int64_t wanted) { return found >= wanted && found <= wanted + wanted / 8 + 65536; };
    CHECK(about(bytes(Category::weights, now.live), weights));
    CHECK(about(bytes(Category::gradients, now.live), weights));
    CHECK(about(bytes(Category::optimizer, now.live), 2 * weights));
    // A layer keeps its joint projection, attention's output, two norms' inputs and outputs, and the wide middle twice.
    const int64_t hidden = 4 * batch * length * 1024, layers = 24;
    if (kept > activations) activations = kept;
    if (policy == std::string("none")) {
      CHECK(kept > layers * 14 * hidden);
      CHECK(kept < layers * 20 * hidden);
    } else {
      CHECK(kept < (layers + 4) * hidden * 9 / 8);  // a layer's input each, and the head
      CHECK(bytes(Category::activations, now.peak) < activations / 4);
    }
  }
  CHECK(memory_statistics(meta).live == before.live);
  CHECK(memory_statistics(cpu).peak_total - before_cpu.live_total < 64 << 20);  // nothing of it is real
}
