// `cinta plan`: what a training step of a model and batch would cost, planned on the meta device.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cinta/core/context.h"
#include "cinta/optim/adamw.h"
#include "cinta/optim/sgd.h"
#include "cinta/train/find_batch_size.h"
#include "cinta/train/precision.h"
#include "cinta/train/step_cost.h"
#include "tools/byte_size.h"
#include "tools/commands.h"
#include "tools/sample_step.h"
#include "tools/train_options.h"

namespace cinta::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string model, device = "meta", optimizer = "adamw", precision = "fp32", checkpointing = "none", memory;
  int64_t batch = 32, length = 128, masked = 0, vocabulary = 30522;
  bool json = false;
  const CLI::App* command = nullptr;  ///< to see what was given
  bool rehearsed = false;             ///< two layers, run on `device` for the memory alone
  bool larger_not_tried = false;      ///< the search for the largest batch ended where it fitted still
};

train::StepCost cost_of(const Options& options, models::Module& model, const Callback<Tensor()>& loss) {
  std::unique_ptr<optim::Optimizer> optimizer;
  if (options.optimizer == "sgd")
    optimizer = std::make_unique<optim::Sgd>(model.parameters());
  else
    optimizer = std::make_unique<optim::AdamW>(model.parameters());
  const std::optional<autograd::Autocast> autocast = train::parse_precision(options.precision);
  if (autocast && autocast->low != Dtype::f32) optimizer->keep_shadows(autocast->low);
  const auto forward = [&] {
    const autograd::AutocastScope types(autocast);
    return loss();
  };
  train::StepCost cost = train::step_cost(model, forward, *optimizer);
  if (autocast && !options.rehearsed) train::require_modules_met(*autocast, Where());
  return cost;
}

train::StepCost step_of(const Options& options) {
  const Device device = parse_device(options.device);
  SampleModel model = sample_model(options.model, options.vocabulary, options.length);
  const int64_t length = sample_length(model, *options.command, options.length);
  std::unique_ptr<Rehearsal> rehearsed;
  SampleInputs inputs{.zeros = true, .numbers = !options.rehearsed};
  if (options.rehearsed) {
    // All layers but the last, which computes some rows only, work alike, one after the other.
    model.config.num_hidden_layers = std::min<int64_t>(model.config.num_hidden_layers, 2);
    // Not before the inputs are there, which kernels read.
    if (options.device != "meta") inputs.ready = [&] { rehearsed = std::make_unique<Rehearsal>(device); };
  }
  const SampleStep step =
      sample_step(model, {options.batch, length, options.masked}, device, options.checkpointing, inputs);
  return cost_of(options, *step.model, step.loss);
}

constexpr auto workspace = static_cast<size_t>(Category::workspace);

/// What a step costs. A plan adds the memory that the CPU's kernels would work in, which they alone know.
train::StepCost plan(Options options) {
  train::StepCost cost = step_of(options);
  if (options.device != "meta") return cost;
  options.rehearsed = true;
  const int64_t without = step_of(options).memory.peak_total;
  options.device = "cpu";
  try {
    const MemoryStatistics with = step_of(options).memory;
    cost.memory.peak[workspace] = with.peak[workspace];
    cost.memory.peak_total += with.peak_total - without;  // less than that peak, where it comes at another time
  } catch (const OutOfMemory&) {                          // print() says that it is missing
  }
  return cost;
}

double mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

constexpr int64_t largest_tried = 1 << 20;

int64_t largest_batch(Options options) {
  const uint64_t bytes = byte_size("--memory", options.memory);
  const auto fits = [&](auto cost, int64_t size) {
    options.batch = size;
    return static_cast<uint64_t>(cost(options).memory.peak_total) <= bytes;
  };
  require(fits(plan, 1), "plan", Where(), "not even a batch of 1 fits ", options.memory);
  // Without the workspace first, which is quick.
  int64_t low = 1, high = train::find_batch_size([&](int64_t size) { return fits(step_of, size); }, largest_tried);
  if (fits(plan, high)) return high;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(plan, middle) ? low : high) = middle;
  }
  return low;
}

Json json_of(const Options& options, const train::StepCost& cost) {
  Json layers = Json::array(), peak = Json::object();
  for (const train::LayerCost& layer : cost.layers)
    layers.push_back({{"name", layer.name.empty() ? "rest" : layer.name},
                      {"parameters", layer.parameters},
                      {"kept_bytes", layer.kept_bytes},
                      {"forward_flops", layer.forward_flops},
                      {"backward_flops", layer.backward_flops}});
  for (int i = 0; i < category_count; ++i)
    peak[std::string(cinta::name_of(static_cast<Category>(i)))] = cost.memory.peak[static_cast<size_t>(i)];
  Json out{{"batch_size", options.batch},
           {"layers", layers},
           {"peak_bytes_by_category", peak},
           {"peak_bytes", cost.memory.peak_total}};
  if (options.larger_not_tried) out["larger_not_tried"] = true;
  return out;
}

void print(const Options& options, const train::StepCost& cost) {
  train::LayerCost sum{.name = "all"};
  std::printf("%-28s %12s %12s %12s %12s\n", "layer", "parameters", "kept MiB", "forward GF", "backward GF");
  const auto line = [](const train::LayerCost& layer) {
    std::printf("%-28s %12lld %12.2f %12.3f %12.3f\n", layer.name.empty() ? "rest" : layer.name.c_str(),
                static_cast<long long>(layer.parameters), mebibytes(layer.kept_bytes), 1e-9 * layer.forward_flops,
                1e-9 * layer.backward_flops);
  };
  for (const train::LayerCost& layer : cost.layers) {
    line(layer);
    sum.parameters += layer.parameters;
    sum.kept_bytes += layer.kept_bytes;
    sum.forward_flops += layer.forward_flops;
    sum.backward_flops += layer.backward_flops;
  }
  line(sum);
  std::printf("\nbatch of %lld: peak memory of the step %.2f MiB; at the peak of each:",
              static_cast<long long>(options.batch), mebibytes(cost.memory.peak_total));
  for (int i = 0; i < category_count; ++i)
    std::printf("%s %s %.2f", i ? "," : "", std::string(cinta::name_of(static_cast<Category>(i))).c_str(),
                mebibytes(cost.memory.peak[static_cast<size_t>(i)]));
  if (cost.memory.peak[workspace] == 0)
    std::printf("\nThis machine cannot even lay the step out, so what the CPU's kernels work in is not in this sum.");
  if (options.larger_not_tried) std::printf("\nIt fits --memory, and larger batches were not tried.");
  std::printf("\nGF: thousand millions of multiplications and additions in matrix products and attention\n");
}

}  // namespace

void add_plan(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("plan", "what a training step would cost: bytes and products by layer");
  command->add_option("model", options->model, sample_model_help)->required();
  command->add_option("--per_device_train_batch_size,--batch_size", options->batch, "samples of a micro-batch")
      ->capture_default_str()
      ->check(at_least(1));
  options->command = command;
  command->add_option("--sequence_length", options->length, sample_length_help)
      ->capture_default_str()
      ->check(at_least(1));
  command->add_option("--masked", options->masked, "tokens of a sequence to guess; 0: 15 % of it")
      ->capture_default_str()
      ->check(at_least(0));
  command->add_option("--vocab_size", options->vocabulary, "of a BERT by name")->capture_default_str();
  command->add_option("--gradient_checkpointing", options->checkpointing, "none, sqrt, every:N, selective:op,op")
      ->capture_default_str();
  command->add_option("--precision", options->precision, "as in cinta train")->capture_default_str();
  command->add_option("--optim", options->optimizer, "adamw, sgd")
      ->capture_default_str()
      ->check(CLI::IsMember({"adamw", "sgd"}));
  command->add_option("--device", options->device, "meta plans; another device runs the step and measures it")
      ->capture_default_str();
  command->add_option("--memory", options->memory, "e.g. 8GiB: find the largest batch whose step fits, and plan it");
  command->add_flag("--json", options->json, "one object");
  set_work(*command, [options] {
    if (!options->memory.empty()) {
      options->batch = largest_batch(*options);
      options->larger_not_tried = options->batch == largest_tried;
    }
    const train::StepCost cost = plan(*options);
    if (options->json)
      std::printf("%s\n", json_of(*options, cost).dump(2).c_str());
    else
      print(*options, cost);
  });
}

}  // namespace cinta::tools
