// One step under all watchers at once: its times add up, its tape is the recorded one, its peak is the pool's.
#include "cinta/train/step_profile.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "bert_helpers.h"
#include "cinta/autograd/autocast.h"
#include "cinta/core/context.h"
#include "cinta/ops/loss.h"
#include "cinta/optim/adamw.h"
#include "cinta/train/report_sections.h"

using namespace cinta;
using namespace cinta::testing;
using train::StepProfile;

namespace {

struct Small {
  explicit Small(const std::string& policy) : bert(small_config(0.1), 3), optimizer(bert.parameters(), {}) {
    bert.set_checkpoint_policy(autograd::parse_checkpoint_policy(policy));
  }
  Tensor loss() { return cross_entropy(bert({.ids = ids}), labels); }
  void step(int micro_batches = 1) {
    optimizer.zero_gradients();
    for (int i = 0; i < micro_batches; ++i) autograd::backward(loss());
    optimizer.step({.max_norm = 1.0});
  }
  StepProfile profile(int micro_batches = 1) {
    step();
    train::StepProfiler profiler(bert, 7);
    step(micro_batches);
    return profiler.finish();
  }
  models::BertForMaskedLM bert;
  optim::AdamW optimizer;
  Tensor ids = from_values(std::vector<int64_t>(36, 5), {3, 12}),
         labels = from_values(std::vector<int64_t>(36, 7), {36});
};

int64_t held(const std::vector<train::TapeNode>& tape) {
  return std::accumulate(tape.begin(), tape.end(), int64_t{0},
                         [](int64_t sum, const train::TapeNode& node) { return sum + node.held_bytes(); });
}

}  // namespace

TEST_CASE("the times by op and by module are those of the whole step", "[step_profile]") {
  for (const char* policy : {"none", "every:1"}) {
    const StepProfile profile = Small(policy).profile();
    CHECK(profile.step == 7);
    REQUIRE(!profile.slices.empty());
    const int64_t whole = profile.slices[0].end - profile.slices[0].begin;
    for (const auto& rows : {train::times_by_op(profile), train::times_by_module(profile)}) {
      int64_t sum = 0;
      for (const train::OpTime& row : rows) {
        CHECK(row.forward >= 0);
        CHECK(row.backward >= 0);
        sum += row.total();
      }
      CHECK(sum == whole);
      CHECK(std::ranges::is_sorted(rows, std::greater(), &train::OpTime::total));
    }
    const auto ops = train::times_by_op(profile);
    const auto calls = [&](const char* name) { return std::ranges::find(ops, name, &train::OpTime::name)->calls; };
    CHECK(calls("self_attention") == (std::string(policy) == "none" ? 2 : 4));  // two layers, and again in backward
    CHECK(calls("cross_entropy") == 1);
    CHECK(calls("optimizer") == 1);
  }
}

TEST_CASE("the tape of a step is that of its first micro-batch", "[step_profile]") {
  Small small("none");
  const StepProfile profile = small.profile(3);
  Tensor loss;
  const auto alone = train::record_tape([&] { loss = small.loss(); }, small.bert.parameters());
  REQUIRE(profile.tape.size() == alone.size());
  CHECK(held(profile.tape) == held(alone));
  for (size_t i = 0; i < alone.size(); ++i) {
    CHECK(profile.tape[i].number == i + 1);
    CHECK(profile.tape[i].op == alone[i].op);
    CHECK(profile.tape[i].module == alone[i].module);
    const auto same = [&](const train::TraceSlice& slice) {
      return slice.kind == train::TraceSlice::Kind::forward && slice.node == i + 1 && slice.name == alone[i].op;
    };
    CHECK(std::ranges::count_if(profile.slices, same) == 1);
  }
}

TEST_CASE("the peak of a step is the highest that was counted, and most of it has a name", "[step_profile]") {
  const ThreadScope one(1);  // a second thread's workspace grows when it first gets a tile: the peak may be there
  const StepProfile profile = Small("none").profile();
  const train::MemoryPeak& peak = profile.peak;
  int64_t highest = 0;
  for (const train::TraceMemory& point : profile.memory)
    highest = std::max(highest, std::accumulate(point.live.begin(), point.live.end(), int64_t{0}));
  CHECK(peak.total == highest);
  CHECK(peak.total == std::accumulate(peak.live.begin(), peak.live.end(), int64_t{0}));
  CHECK(!peak.op.empty());
  CHECK(std::ranges::is_sorted(peak.tensors, std::greater(), &train::LiveTensor::bytes));
  std::array<int64_t, category_count> named{};
  for (const train::LiveTensor& one : peak.tensors) named[static_cast<size_t>(one.category)] += one.bytes;
  const auto share = [&](Category category) {
    const auto i = static_cast<size_t>(category);
    CHECK(named[i] <= peak.live[i]);
    return static_cast<double>(named[i]) / static_cast<double>(peak.live[i]);
  };
  CHECK(share(Category::weights) > 0.8);
  CHECK(share(Category::activations) > 0.6);
  const auto is_projection = [](const train::LiveTensor& one) {
    return one.tensor == "f32[3,12,60]" && one.made_by == "linear" && one.kept_by == "self_attention";
  };
  CHECK(std::ranges::any_of(peak.tensors, is_projection));
  const auto is_gradient = [](const train::LiveTensor& one) {
    return one.tensor == "f32[61,20]" && one.made_by == "gradient of bert.embeddings.word_embeddings.weight" &&
           one.category == Category::gradients;
  };
  CHECK(std::ranges::count_if(peak.tensors, is_gradient) == 1);
  CHECK(share(Category::gradients) > 0.2);  // a unit's are all alive from the first one on
  const auto is_embedding = [](const train::LiveTensor& one) {
    return one.made_by == "bert.embeddings.word_embeddings.weight" && one.category == Category::weights;
  };
  CHECK(std::ranges::count_if(peak.tensors, is_embedding) == 1);
}

TEST_CASE("copies of weights in low precision are weights, and have names", "[step_profile]") {
  Small small("none");
  small.optimizer.keep_shadows(Dtype::bf16);
  const autograd::AutocastScope types(autograd::Autocast{.low = Dtype::bf16});
  const train::MemoryPeak peak = small.profile().peak;
  const auto is_copy = [](const train::LiveTensor& one) {
    return one.made_by == "bf16 copy of cls.predictions.transform.dense.weight" && one.category == Category::weights;
  };
  CHECK(std::ranges::count_if(peak.tensors, is_copy) == 1);
}
