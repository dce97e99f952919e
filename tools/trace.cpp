// `cinta trace`: one training step of a model by name, as a timeline and as the tape it left.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cinta/autograd/tape.h"
#include "cinta/backends/threads.h"
#include "cinta/core/random.h"
#include "cinta/data/atomic_file.h"
#include "cinta/models/bert/bert.h"
#include "cinta/models/mlp.h"
#include "cinta/ops/loss.h"
#include "cinta/optim/adamw.h"
#include "cinta/train/tape_graph.h"
#include "cinta/train/trace.h"
#include "tools/commands.h"
#include "tools/train_options.h"

namespace cinta::tools {
namespace {

struct Options {
  std::string model = "tiny", device = "cpu", gradient_checkpointing = "none", dot, trace;
  int64_t batch_size = 8, length = 64, vocab_size = 30522, depth = 0;
  int threads = 0;
  bool json = false;
};

/// A model and its loss on one batch of random data.
struct Subject {
  std::unique_ptr<models::Module> model;
  std::function<Tensor()> loss;
};

Tensor random_indices(const char* name, int64_t bound, const Shape& shape, Device device) {
  std::vector<int64_t> out(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<int64_t>(random_word(0, stream_id(name), 0, i) % static_cast<uint32_t>(bound));
  return from_values(out, shape, device);
}

Subject make_mlp(const Options& options, Device device) {
  require(options.gradient_checkpointing == "none", "trace", Where(), "an MLP has no layers to checkpoint, given ",
          "--gradient_checkpointing ", options.gradient_checkpointing);
  constexpr int64_t features = 784, classes = 10;
  auto mlp =
      std::make_unique<models::Mlp>(std::vector<int64_t>{features, 512, 512, classes}, 0, Activation::relu, device);
  std::vector<float> values(static_cast<size_t>(options.batch_size * features));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random_normal(0, stream_id("x"), 0, i));
  const Tensor x = from_values(values, {options.batch_size, features}, device),
               labels = random_indices("labels", classes, {options.batch_size}, device);
  auto loss = [&model = *mlp, x, labels] { return cross_entropy(model(x), labels); };
  return {std::move(mlp), loss};
}

Subject make_bert(const Options& options, Device device) {
  models::BertConfig config = models::BertConfig::named(options.model);
  config.vocab_size = options.vocab_size;
  config.max_position_embeddings = std::max(config.max_position_embeddings, options.length);
  auto bert = std::make_unique<models::BertForMaskedLM>(config, 0, device);
  bert->set_checkpoint_policy(autograd::parse_checkpoint_policy(options.gradient_checkpointing));
  constexpr int64_t masked_every = 7;  // BERT masks 15 % of the tokens
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < options.batch_size * options.length; i += masked_every) rows.push_back(i);
  const Shape items{static_cast<int64_t>(rows.size())};
  const Tensor ids = random_indices("ids", config.vocab_size, {options.batch_size, options.length}, device),
               masked = from_values(rows, items, device),
               labels = random_indices("labels", config.vocab_size, items, device);
  auto loss = [&model = *bert, ids, masked, labels] { return cross_entropy(model({.ids = ids}, masked), labels); };
  return {std::move(bert), loss};
}

void trace_step(const Subject& subject, const std::string& path) {
  optim::AdamW optimizer(subject.model->parameters(), {});
  auto step = [&] {
    optimizer.zero_gradients();
    autograd::backward(subject.loss());
    optimizer.step({.max_norm = 1.0});
  };
  step();  // memory and plans are made at first use, which says nothing of the steps to come
  train::Trace trace;
  trace.start("step");
  step();
  trace.stop();
  trace.write(path);
}

void run(const Options& options) {
  if (options.threads > 0) set_threads(options.threads);
  const Device device = parse_device(options.device);
  const Subject subject = options.model == "mlp" ? make_mlp(options, device) : make_bert(options, device);
  if (!options.trace.empty()) trace_step(subject, options.trace);
  Tensor loss;  // what it leaves on the tape is alive while it is looked at
  const std::vector<train::TapeNode> tape =
      train::fold(train::record_tape([&] { loss = subject.loss(); }, subject.model->parameters()), options.depth);
  if (!options.dot.empty()) {
    const std::string title = options.model == "mlp" ? join("mlp, batch of ", options.batch_size)
                                                     : join("bert-", options.model, ", batch of ", options.batch_size,
                                                            " x ", options.length, " tokens");
    const std::string dot = train::tape_dot(tape, title);
    data::AtomicFile file(options.dot);
    file.write_text(dot);
    file.commit();
  }
  if (options.json)
    std::printf("%s", train::tape_json(tape).c_str());
  else if (options.dot.empty() && options.trace.empty())
    std::printf("%s", train::tape_table(tape).c_str());
}

}  // namespace

void add_trace(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("trace", "one training step of a model: its tape as a table, its picture, its timeline");
  command->add_option("--model", options->model, "a BERT (tiny, mini, small, base, large) or mlp (784-512-512-10)")
      ->capture_default_str();
  command->add_option("--batch_size", options->batch_size)->capture_default_str()->check(at_least(1));
  command->add_option("--sequence_length", options->length)->capture_default_str()->check(at_least(1));
  command->add_option("--vocab_size", options->vocab_size)->capture_default_str()->check(at_least(2));
  command
      ->add_option("--gradient_checkpointing", options->gradient_checkpointing, "none, sqrt, every:N, selective:op,op")
      ->capture_default_str();
  command->add_option("--device", options->device, "meta: nothing is computed, only planned")->capture_default_str();
  command->add_option("--threads", options->threads, "0: all cores")->capture_default_str()->check(CLI::Range(0, 1024));
  command->add_option("--dot", options->dot, "file for the tape as a graph: dot -Tsvg FILE draws it");
  command->add_option("--trace", options->trace, "file for the timeline: ui.perfetto.dev opens it");
  command->add_option("--depth", options->depth, "fold the tape's ops by so many parts of their modules' paths; 0: not")
      ->capture_default_str()
      ->check(at_least(0));
  command->add_flag("--json", options->json, "the tape as JSON instead of a table");
  set_work(*command, [options] { run(*options); });
}

}  // namespace cinta::tools
