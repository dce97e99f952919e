// Timelines: valid JSON, slices that nest, an arrow from each forward to its backward; what is traced computes the same
// bits, and what is not traced does nothing more than without a trace.
#include "cinta/train/trace.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <set>

#include "bert_helpers.h"
#include "cinta/autograd/anomaly.h"
#include "cinta/core/context.h"
#include "cinta/ops/loss.h"
#include "cinta/optim/adamw.h"
#include "heap_requests.h"
#include "scratch.h"

// Those of the whole program: what this thread asks of the heap is counted. Inlined they would look to the compiler as
// if memory of one kind were given back to another. A sanitizer has its own, and nothing is counted then.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++cinta::testing::heap_requests;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif

using namespace cinta;
using namespace cinta::testing;
using Json = nlohmann::json;
using train::Trace;

namespace {

/// A small BERT with dropout and checkpointed layers.
class Small {
 public:
  Small() : bert_(small_config(0.1), 3), optimizer_(bert_.parameters(), {.rate = 1e-2}) {
    bert_.set_checkpoint_policy(autograd::parse_checkpoint_policy("every:1"));
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < 3 * 12; ++i) ids.push_back(i * 7 % 61);
    ids_ = from_values(ids, {3, 12});
    labels_ = from_values(ids, {36});
  }
  double step() {
    optimizer_.zero_gradients();
    bert_.random().set_step(steps_++);
    const Tensor loss = cross_entropy(bert_({.ids = ids_}), labels_);
    autograd::backward(loss);
    optimizer_.step({.max_norm = 1.0});
    return item(loss);
  }
  std::vector<std::vector<float>> weights() const {
    std::vector<std::vector<float>> out;
    for (const optim::Parameter& parameter : bert_.parameters()) out.push_back(to_vector<float>(parameter.tensor));
    return out;
  }

 private:
  models::BertForMaskedLM bert_;
  optim::AdamW optimizer_;
  Tensor ids_, labels_;
  int64_t steps_ = 0;
};

struct Counter : autograd::Observer {
  void forward(const char* name, Where, std::span<const Tensor>) override { ++forwards[name]; }
  void recorded(const autograd::Node& node) override { nodes.insert(node.number); }
  void backward(const autograd::Node& node, std::span<const Tensor>) override { ++backwards[node.name()]; }
  std::map<std::string, int64_t> forwards, backwards;
  std::set<uint64_t> nodes;
};

std::vector<Json> written(const Trace& trace) {
  const Scratch scratch;
  trace.write(scratch / "trace.json");
  return Json::parse(read_bytes(scratch / "trace.json")).at("traceEvents");
}

std::vector<Json> with(const std::vector<Json>& events, const char* key, const std::string& value) {
  std::vector<Json> out;
  for (const Json& event : events)
    if (event.value(key, "") == value) out.push_back(event);
  return out;
}

double begin_of(const Json& slice) { return slice.at("ts"); }
double end_of(const Json& slice) { return begin_of(slice) + slice.at("dur").get<double>(); }
constexpr double half_a_nanosecond = 5e-4;

/// Each slice lies inside all those that are under way when it begins.
void check_nesting(std::vector<Json> slices) {
  std::ranges::stable_sort(slices, {}, begin_of);
  std::vector<Json> open;
  for (const Json& slice : slices) {
    CHECK(slice.at("dur") >= 0);
    while (!open.empty() && end_of(open.back()) <= begin_of(slice) + half_a_nanosecond) open.pop_back();
    if (!open.empty()) {
      INFO(slice << " in " << open.back());
      CHECK(end_of(slice) <= end_of(open.back()) + half_a_nanosecond);
    }
    open.push_back(slice);
  }
}

}  // namespace

TEST_CASE("a trace shows each op once, nested, with an arrow from forward to backward", "[trace]") {
  Small small;
  Counter counter;
  Trace trace;
  {
    const autograd::Scoped watching(&autograd::Mode::observer, static_cast<autograd::Observer*>(&counter));
    for (const char* name : {"step 1", "step 2"}) {
      trace.start(name);
      small.step();
      trace.stop();
    }
    CHECK(autograd::mode().observer == &counter);
  }
  const std::vector<Json> events = written(trace), slices = with(events, "ph", "X");
  check_nesting(slices);

  std::map<std::string, int64_t> phases, forwards, backwards;
  std::map<uint64_t, const Json*> forward_of, backward_of;
  for (const Json& slice : slices) {
    const std::string name = slice.at("name"), kind = slice.at("cat");
    if (kind == "phase") {
      ++phases[name];
      continue;
    }
    const Json& args = slice.at("args");
    CHECK(args.at("bytes") > 0);
    ++(kind == "forward" ? forwards[name] : backwards[name.substr(0, name.find(" backward"))]);
    if (args.contains("node")) {
      auto& seen = kind == "forward" ? forward_of : backward_of;
      CHECK(seen.emplace(args.at("node").get<uint64_t>(), &slice).second);
    }
  }
  CHECK(phases == std::map<std::string, int64_t>{{"step 1", 1}, {"step 2", 1}, {"backward", 2}, {"optimizer", 2}});
  CHECK(forwards == counter.forwards);  // the observer around the trace saw the same
  CHECK(backwards == counter.backwards);
  CHECK(forward_of.size() == counter.nodes.size());
  CHECK(forward_of.size() > 20);
  CHECK(forwards.at("self_attention") == 8);  // two layers, two steps, and each is run again

  const std::vector<Json> starts = with(events, "ph", "s"), ends = with(events, "ph", "f");
  CHECK(starts.size() == forward_of.size());
  REQUIRE(starts.size() == ends.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    const uint64_t node = starts[i].at("id");
    CHECK(ends[i].at("id") == node);
    CHECK(ends[i].at("bp") == "e");
    for (const char* same : {"name", "cat", "pid", "tid"}) CHECK(starts[i].at(same) == ends[i].at(same));
    REQUIRE(forward_of.contains(node));
    REQUIRE(backward_of.contains(node));
    CHECK(starts[i].at("ts") == forward_of[node]->at("ts"));
    CHECK(ends[i].at("ts") == backward_of[node]->at("ts"));
    CHECK(end_of(*forward_of[node]) <= begin_of(*backward_of[node]));
    CHECK(backward_of[node]->at("args").value("module", "") == forward_of[node]->at("args").value("module", ""));
  }

  const std::vector<Json> attention = with(slices, "name", "self_attention");
  CHECK(attention[0].at("args").at("inputs") == Json{"f32[3,12,60]@cpu"});
  CHECK(attention[0].at("args").at("outputs") == Json{"f32[3,12,20]@cpu"});
  CHECK(attention[0].at("args").at("bytes") == 4 * 3 * 12 * 80);
  CHECK(attention[0].at("args").at("module") == "bert.encoder.layer.0");
  CHECK(attention[0].at("args").at("at").get<std::string>().starts_with("trace.cpp:"));

  const std::vector<Json> counters = with(events, "ph", "C");
  REQUIRE(counters.size() > 20);
  for (const Json& point : counters) {
    CHECK(point.at("name") == "memory cpu");
    CHECK(point.at("args").size() == category_count);
    for (const Json& bytes : point.at("args")) CHECK(bytes >= 0);
  }
  const auto live = memory_statistics(cpu).live;
  CHECK(counters.back().at("args").at("weights") == live[static_cast<int>(Category::weights)]);
  CHECK(with(events, "ph", "M").size() == 2);
}

TEST_CASE("a traced run computes the same bits", "[trace]") {
  Small plain, traced;
  Trace trace;
  for (int64_t step = 0; step < 4; ++step) {
    const double expected = plain.step();
    if (step > 0) trace.start("step");
    CHECK(traced.step() == expected);
    trace.stop();
  }
  CHECK(plain.weights() == traced.weights());
}

TEST_CASE("a trace that is off costs a step nothing", "[trace]") {
  const ThreadScope one(1);
  Small small;
  struct Counts {
    int64_t heap, blocks, system;
    bool operator==(const Counts&) const = default;
  };
  auto count_step = [&] {
    const MemoryStatistics before = memory_statistics(cpu);
    const int64_t heap = heap_requests;
    small.step();
    const int64_t asked = heap_requests - heap;
    const MemoryStatistics after = memory_statistics(cpu);
    return Counts{asked, after.requests - before.requests, after.system_requests - before.system_requests};
  };
  for (int warm = 0; warm < 3; ++warm) small.step();
  const Counts plain = count_step();
  CHECK(plain.system == 0);
  CHECK(count_step() == plain);
  Trace trace;
  CHECK(count_step() == plain);
  trace.start("step");
  const Counts traced = count_step();
  trace.stop();
  CHECK(traced.blocks == plain.blocks);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(traced.heap > plain.heap);  // the count sees the trace
#endif
  CHECK(count_step() == plain);
}

TEST_CASE("an op that throws leaves a trace that can go on", "[trace]") {
  Small small;
  Trace trace;
  {
    const autograd::AnomalyScope anomaly;  // it watches, too, and ends before the trace does
    trace.start("bad");
    const Tensor logits = from_values(std::vector<float>{1, 2, NAN, 4}, {1, 4});
    CHECK_THROWS(cross_entropy(logits, from_values(std::vector<int64_t>{9}, {1})));
    CHECK_THROWS_WITH(cross_entropy(logits, from_values(std::vector<int64_t>{2}, {1})), Catch::Contains("NaN"));
    small.step();
  }
  CHECK(autograd::mode().observer != nullptr);
  trace.stop();
  CHECK(autograd::mode().observer == nullptr);
  trace.start("good");
  CHECK_THROWS_WITH(trace.start("again"), Catch::Contains("again"));
  small.step();
  trace.stop();
  CHECK(autograd::mode().observer == nullptr);
  const std::vector<Json> events = written(trace), slices = with(events, "ph", "X");
  check_nesting(slices);
  CHECK(with(slices, "name", "bad").size() == 1);
  CHECK(with(slices, "name", "optimizer").size() == 2);
  CHECK(with(events, "ph", "s").size() == with(events, "ph", "f").size());
}
