// `cinta trace`: one training step of a model by name, as a timeline and as the tape it left.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cinta/autograd/tape.h"
#include "cinta/backends/threads.h"
#include "cinta/data/atomic_file.h"
#include "cinta/optim/adamw.h"
#include "cinta/train/tape_graph.h"
#include "cinta/train/trace.h"
#include "tools/commands.h"
#include "tools/sample_step.h"
#include "tools/train_options.h"

namespace cinta::tools {
namespace {

struct Options {
  std::string model = "tiny", device = "cpu", gradient_checkpointing = "none", dot, trace;
  int64_t batch_size = 8, length = 64, vocab_size = 30522, depth = 0;
  const CLI::App* command = nullptr;  ///< to see what was given
  int threads = 0;
  bool json = false;
};

void trace_step(const SampleStep& subject, const std::string& path) {
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
  const SampleModel model = sample_model(options.model, options.vocab_size, options.length);
  const int64_t length = sample_length(model, *options.command, options.length);
  const SampleStep subject =
      sample_step(model, {.batch = options.batch_size, .sequence = length}, device, options.gradient_checkpointing);
  if (!options.trace.empty()) trace_step(subject, options.trace);
  Tensor loss;  // what it leaves on the tape is alive while it is looked at
  const std::vector<train::TapeNode> tape =
      train::fold(train::record_tape([&] { loss = subject.loss(); }, subject.model->parameters()), options.depth);
  if (!options.dot.empty()) {
    std::string title = join(options.model, ", batch of ", options.batch_size);
    if (model.architecture != "mlp") title += join(" x ", length, " tokens");
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
  command->add_option("--model", options->model, sample_model_help)->capture_default_str();
  command->add_option("--batch_size", options->batch_size, "samples of the step")
      ->capture_default_str()
      ->check(at_least(1));
  options->command = command;
  command->add_option("--sequence_length", options->length, sample_length_help)
      ->capture_default_str()
      ->check(at_least(1));
  command->add_option("--vocab_size", options->vocab_size, "of a BERT by name")
      ->capture_default_str()
      ->check(at_least(2));
  command
      ->add_option("--gradient_checkpointing", options->gradient_checkpointing, "none, sqrt, every:N, selective:op,op")
      ->capture_default_str();
  command->add_option("--device", options->device, "meta: nothing is computed, only planned")->capture_default_str();
  add_threads(*command, options->threads);
  command->add_option("--dot", options->dot, "file for the tape as a graph: dot -Tsvg FILE draws it");
  command->add_option("--trace", options->trace, "file for the timeline: ui.perfetto.dev opens it");
  command->add_option("--depth", options->depth, "fold the tape's ops by so many parts of their modules' paths; 0: not")
      ->capture_default_str()
      ->check(at_least(0));
  command->add_flag("--json", options->json, "the tape as JSON instead of a table");
  set_work(*command, [options] { run(*options); });
}

}  // namespace cinta::tools
