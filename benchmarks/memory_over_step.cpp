// Draws the live activation bytes after each op of one training step: plain, with every layer checkpointed, and with
// saved tensors offloaded. Usage: memory_over_step OUTPUT.svg
#include <cstdio>

#include "cinta/autograd/offload.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/context.h"
#include "cinta/models/bert/bert.h"
#include "cinta/ops/loss.h"
#include "cinta/train/plot.h"

using namespace cinta;

namespace {

/// Writes down the live activation bytes at every op, and where backward begins.
struct MemoryCurve : autograd::Observer {
  train::PlotSeries series;
  void mark() {
    const int64_t live = memory_statistics(cpu).live[static_cast<int>(Category::activations)];
    series.x.push_back(static_cast<double>(series.x.size()));
    series.y.push_back(static_cast<double>(live - base) / (1 << 20));
  }
  void forward(const char*, Where, std::span<const Tensor>) override { mark(); }
  void backward(const autograd::Node&, std::span<const Tensor>) override { mark(); }
  int64_t base = memory_statistics(cpu).live[static_cast<int>(Category::activations)];
};

train::PlotSeries measure(const char* name, const char* policy, bool offload) {
  constexpr int64_t samples = 8, length = 128;
  models::BertConfig config = models::BertConfig::named("mini");
  config.vocab_size = 4096;
  config.num_hidden_layers = 8;
  models::BertForMaskedLM bert(config);
  bert.set_checkpoint_policy(autograd::parse_checkpoint_policy(policy));
  std::vector<int64_t> ids(samples * length), rows, labels;
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int64_t>(i * 37 % 4096);
    if (i % 7 == 0) {
      rows.push_back(static_cast<int64_t>(i));
      labels.push_back(ids[i]);
    }
  }
  const int64_t count = static_cast<int64_t>(rows.size());
  const Tensor tokens = from_values(ids, {samples, length}), masked = from_values(rows, {count}),
               targets = from_values(labels, {count});
  MemoryCurve curve;
  curve.series.name = name;
  {
    autograd::Scoped watching(&autograd::Mode::observer, static_cast<autograd::Observer*>(&curve));
    Tensor loss;
    if (offload) {
      autograd::OffloadScope scope;
      loss = cross_entropy(bert({.ids = tokens}, masked), targets);
    } else {
      loss = cross_entropy(bert({.ids = tokens}, masked), targets);
    }
    autograd::backward(loss);
  }
  return curve.series;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: %s OUTPUT.svg\n", argv[0]), 2;
  const std::vector<train::PlotSeries> series{measure("plain", "none", false),
                                              measure("every layer checkpointed", "every:1", false),
                                              measure("saved tensors offloaded", "none", true)};
  for (const train::PlotSeries& one : series) {
    double peak = 0;
    for (double y : one.y) peak = std::max(peak, y);
    std::printf("%-26s peak %6.1f MiB over %zu ops\n", one.name.c_str(), peak, one.x.size());
  }
  train::plot_lines(argv[1], {.title = "Activations over one step: BERT of 8 layers, hidden 256, 8 x 128 tokens",
                              .x_label = "op, forward then backward",
                              .y_label = "MiB alive",
                              .series = series});
}
