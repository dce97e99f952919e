// What checkpointing and host offload save and cost: one training step of a deep BERT, plain and under each policy, in
// turns in one process. Wanted: with every layer checkpointed at most a quarter of the plain step's activation bytes in
// at most 1.35 times its time; with saved tensors offloaded at most a fifth of the bytes; loss and all gradients equal
// bit for bit everywhere.
//
// Activation bytes: what the pool of the device counts under Category::activations (everything that is neither weight,
// gradient of a weight, optimizer state nor workspace; gradients of activations are among it), its peak during forward
// and backward beyond what was alive before (the batches). A block counts with its rounded size.
#include <cstring>
#include <optional>

#include "cinta/autograd/offload.h"
#include "cinta/core/allocator.h"
#include "markdown.h"
#include "workload.h"

namespace benchmark {
namespace {

constexpr double wanted_bytes = 4, wanted_time = 1.35, wanted_offload = 0.8;
constexpr size_t activations = static_cast<size_t>(Category::activations);

/// One way to run the same step.
struct Way {
  std::string name, policy;
  bool offload = false;
  int64_t activation_bytes = 0, host_bytes = 0;
  bool equal = true;
  std::vector<double> walk = {}, step = {}, walk_ratio = {}, step_ratio = {};  // a value a round; ratios over plain
};

struct Time {
  double walk, step;
};

class Race {
 public:
  Race(const models::BertConfig& config, int64_t batch, int64_t sequence, int64_t masked)
      : workload_(config, {batch, sequence, masked, 1}), optimizer_(make_optimizer("adamw", workload_)) {}

  /// Forward and backward without an update, from the same weights each time: bytes, and the bits of the results.
  void check(Way& way, std::vector<std::vector<float>>& plain) {
    optimizer_->zero_gradients();
    const int64_t before = live(cpu), before_host = live(host);
    context().pool(cpu)->reset_peak();
    context().pool(host)->reset_peak();
    std::vector<std::vector<float>> found{to_vector<float>(walk(way, 0))};
    way.activation_bytes = memory_statistics(cpu).peak[activations] - before;
    way.host_bytes = memory_statistics(host).peak[activations] - before_host;
    for (const optim::Parameter& parameter : workload_.model().parameters())
      found.push_back(to_vector<float>(autograd::gradient(parameter.tensor)));
    if (plain.empty()) plain = found;
    for (size_t i = 0; i < plain.size(); ++i)
      way.equal &= std::memcmp(found[i].data(), plain[i].data(), plain[i].size() * sizeof(float)) == 0;
  }

  /// A whole training step.
  Time step(const Way& way) {
    const double start = seconds();
    optimizer_->zero_gradients();
    const Tensor loss = walk(way, next_++);
    const double walked = seconds();
    optimizer_->step();
    item(loss);
    return {walked - start, seconds() - start};
  }

  int64_t parameter_count() { return workload_.model().parameter_count(); }

 private:
  static int64_t live(Device device) { return memory_statistics(device).live[activations]; }

  Tensor walk(const Way& way, int64_t step) {
    workload_.bert.set_checkpoint_policy(autograd::parse_checkpoint_policy(way.policy));
    Tensor loss;
    {
      std::optional<autograd::OffloadScope> scope;
      if (way.offload) scope.emplace();
      loss = workload_.loss(step);
    }
    autograd::backward(loss);
    return loss;
  }

  BertWorkload workload_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  int64_t next_ = 0;
};

double median(const std::vector<double>& values) { return Statistics(values).median; }

Json json_of(const Way& way) {
  return {{"name", way.name},
          {"activation_bytes", way.activation_bytes},
          {"host_bytes", way.host_bytes},
          {"bitwise_equal", way.equal},
          {"step_s", benchmark::json_of(Statistics(way.step))},
          {"forward_backward_s", benchmark::json_of(Statistics(way.walk))},
          {"step_over_plain", median(way.step_ratio)},
          {"forward_backward_over_plain", median(way.walk_ratio)},
          {"rounds_step_s", way.step},
          {"rounds_forward_backward_s", way.walk}};
}

std::string table(const std::vector<Way>& ways) {
  std::string text =
      heading({"way", "activations at their peak, MiB", "plain over it", "copied to the host, MiB", "step s (median)",
               "step over plain", "forward and backward over plain", "loss and gradients equal plain's"});
  for (const Way& way : ways)
    text += row({way.name, number(static_cast<double>(way.activation_bytes) / (1 << 20), 1),
                 number(static_cast<double>(ways[0].activation_bytes) / static_cast<double>(way.activation_bytes), 2),
                 number(static_cast<double>(way.host_bytes) / (1 << 20), 1), number(median(way.step), 3),
                 number(median(way.step_ratio), 3), number(median(way.walk_ratio), 3),
                 way.equal ? "bit for bit" : "**no**"});
  return text;
}

/// A line for each figure that is wanted; `met` is false if one is missed.
std::string verdict(const std::vector<Way>& ways, bool& met) {
  std::string text;
  auto say = [&](const std::string& what, double found, const std::string& wanted, bool fine) {
    text += "- " + what + ": " + number(found, 3) + " (wanted " + wanted + "): " + (fine ? "met" : "**missed**") + "\n";
    met &= fine;
  };
  auto bytes = [&](size_t i) { return static_cast<double>(ways[i].activation_bytes); };
  const double fewer = bytes(0) / bytes(2), time = median(ways[2].step_ratio), moved = 1 - bytes(5) / bytes(0);
  say("every layer, plain activation bytes over its own", fewer, ">= " + number(wanted_bytes, 1),
      fewer >= wanted_bytes);
  say("every layer, step over the plain step", time, "<= " + number(wanted_time, 2), time <= wanted_time);
  say("offload, share of the activation bytes that left the device", moved, ">= " + number(wanted_offload, 1),
      moved >= wanted_offload);
  const auto equal = static_cast<double>(std::count_if(ways.begin(), ways.end(), [](auto& way) { return way.equal; }));
  say("ways that equal plain bit for bit", equal, "all " + std::to_string(ways.size()),
      equal == static_cast<double>(ways.size()));
  return text;
}

void main_program(Options options) {
  models::BertConfig config;
  config.num_hidden_layers = options.get("layers", int64_t{24});
  config.hidden_size = options.get("hidden", int64_t{256});
  config.num_attention_heads = options.get("heads", config.hidden_size / 64);
  config.intermediate_size = 4 * config.hidden_size;
  config.vocab_size = options.get("vocab", int64_t{30522});
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = options.get("dropout", 0.1);
  const int64_t batch = options.get("batch", int64_t{4}), sequence = options.get("sequence", int64_t{128}),
                masked = options.get("masked", int64_t{20}), rounds = options.get("rounds", int64_t{7});
  const std::string kept = options.get("selective", std::string("self_attention"));
  const std::string json = options.get("json", std::string()), markdown = options.get("markdown", std::string());
  set_threads(static_cast<int>(options.get("threads", int64_t{threads()})));
  options.finish();

  std::vector<Way> ways = {{"plain", "none"},
                           {"plain again (the noise)", "none"},
                           {"every layer", "every:1"},
                           {"sqrt: segments of about the root of the depth", "sqrt"},
                           {"every layer, kept: " + kept, "selective:" + kept},
                           {"plain, saved tensors offloaded", "none", true}};
  Race race(config, batch, sequence, masked);
  std::vector<std::vector<float>> results;
  for (Way& way : ways) race.check(way, results);
  for (Way& way : ways) race.step(way);
  for (int64_t round = 0; round < rounds; ++round) {
    for (Way& way : ways) {
      const Time time = race.step(way);
      way.walk.push_back(time.walk);
      way.step.push_back(time.step);
      way.walk_ratio.push_back(time.walk / ways[0].walk.back());
      way.step_ratio.push_back(time.step / ways[0].step.back());
    }
    std::fprintf(stderr, "round %lld of %lld\n", static_cast<long long>(round + 1), static_cast<long long>(rounds));
  }

  const std::string shape = std::to_string(config.num_hidden_layers) + " layers of " +
                            std::to_string(config.hidden_size) + ", " + std::to_string(config.num_attention_heads) +
                            " heads, " + std::to_string(batch) + " x " + std::to_string(sequence) + " tokens, " +
                            std::to_string(race.parameter_count()) + " parameters, fp32, AdamW, " +
                            std::to_string(rounds) + " rounds in turns.";
  bool met = true;
  const std::string judged = verdict(ways, met);
  publish(markdown, measured() + " BERT: " + shape + "\n\n" + table(ways) + "\n" + judged);
  Json out = {{"date", date()}, {"machine", machine()}, {"workload", shape}, {"met", met}};
  for (const Way& way : ways) out["ways"].push_back(json_of(way));
  write(json, out);
}

}  // namespace
}  // namespace benchmark

int main(int argc, char** argv) {
  return benchmark::guarded([&] { benchmark::main_program(benchmark::Options(argc, argv)); });
}
