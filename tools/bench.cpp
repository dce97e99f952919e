// `cinta bench`: a training step, or every kernel row alone, against what the machine can do.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cinta/backends/kernel.h"
#include "cinta/backends/threads.h"
#include "cinta/data/file.h"
#include "cinta/train/precision.h"
#include "tools/bench_precision.h"
#include "tools/bench_rows.h"
#include "tools/bench_step.h"
#include "tools/commands.h"
#include "tools/train_options.h"
#include "tools/widths.h"

namespace cinta::tools {
namespace {

struct StepOptions {
  std::string model = "bert-mini", config, plot, precision = "fp32", layers = "784,512,512,10";
  std::vector<std::string> without;
  int64_t batch = 16, sequence = 128, masked = 20, warmup = 3, steps = 30;
  double dropout = 0;
  int threads = 0;
  bool json = false, ragged = false;
  const CLI::Option *dropout_given = nullptr, *masked_given = nullptr;
  std::vector<const CLI::Option*> of_bert, of_mlp;
};

/// A named BERT has no dropout unless it is asked for; a file's has its own.
SampleModel bert_of(const StepOptions& options) {
  SampleModel out{.architecture = "BertForMaskedLM"};
  if (options.config.empty()) {
    const std::string_view prefix = "bert-", name = options.model;
    out.config = models::BertConfig::named(name.starts_with(prefix) ? name.substr(prefix.size()) : name);
  } else {
    const std::string text = data::read_file(options.config);
    const std::string name = models::model_name_in(text, options.config);
    require<FileError>(name != "mlp", "bench", Where(), options.config, ": an MLP's; --model mlp takes its --layers");
    out.config = models::BertConfig::from_json(text, options.config);
    if (name != "BertModel" && name != "bert" && !name.empty()) out.architecture = name;
  }
  if (options.config.empty() || options.dropout_given->count())
    out.config.hidden_dropout_prob = out.config.attention_probs_dropout_prob = options.dropout;
  return out;
}

/// What belongs to another kind of model is refused, not passed over.
void require_none(const std::vector<const CLI::Option*>& options, const char* whose) {
  for (const CLI::Option* option : options)
    require(option->count() == 0, "bench", Where(), option->get_name(), " is an option of ", whose);
}

SampleStep make_sample(const StepOptions& options, StepSubject& subject) {
  subject = {
      .model = options.config.empty() ? options.model : std::filesystem::path(options.config).filename().string(),
      .unit = "samples",
      .precision = options.precision,
      .architecture = "mlp",
      .without = options.without,
      .batch = options.batch,
      .units = options.batch,
      .warmup = options.warmup,
      .steps = options.steps};
  if (options.model == "mlp") {
    require_none(options.of_bert, "a BERT");
    subject.sizes = widths_of(options.layers);
    return sample_step({.architecture = "mlp", .sizes = subject.sizes}, {.batch = options.batch}, cpu);
  }
  require_none(options.of_mlp, "mlp");
  const SampleModel bert = bert_of(options);
  subject.architecture = bert.architecture;
  const bool masks = bert.architecture == "BertForMaskedLM" || bert.architecture == "BertForPreTraining";
  subject.unit = "tokens";
  subject.dropout = bert.config.hidden_dropout_prob;
  subject.attention_dropout = bert.config.attention_probs_dropout_prob;
  subject.sequence = options.sequence;
  if (options.masked_given->count())
    subject.masked = options.masked;
  else if (masks)
    subject.masked = std::min(options.masked, options.sequence);
  subject.ragged = options.ragged;
  SampleStep sample = sample_step(bert, {options.batch, options.sequence, subject.masked, options.ragged}, cpu);
  subject.units = sample.tokens;
  return sample;
}

/// As if the CPU had not these fused rows.
void leave_out(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto is_it = [&](const KernelRow* row) { return row->is_fused() && row->name() == name; };
    const auto row = std::ranges::find_if(kernel_table(), is_it);
    if (row == kernel_table().end()) {
      std::string fused;
      for (const KernelRow* other : kernel_table())
        if (other->is_fused()) fused += join(fused.empty() ? "" : ", ", other->name());
      throw ValueError(join("[bench] --without: a fused row, of ", fused, "; given ", name));
    }
    (*row)->leave_out(cpu, true);
  }
}

void bench_step(const StepOptions& options) {
  if (options.threads > 0) set_threads(options.threads);
  leave_out(options.without);
  StepSubject subject;
  SampleStep sample = make_sample(options, subject);
  sample.autocast = train::parse_precision(options.precision);
  const bool bf16 = sample.autocast && sample.autocast->low == Dtype::bf16;
  const MachineLimits before = measure_limits(beyond_caches(), {.products = bf16 ? Dtype::bf16 : Dtype::f32});
  const StepTimes times = time_steps(sample, options.warmup, options.steps);
  const MachineLimits limits = measure_limits(beyond_caches(), before);
  options.json ? print_step_json(subject, times, limits) : print_step(subject, times, limits);
  if (!options.plot.empty()) plot_step(options.plot, subject, times, limits);
}

void add_step(CLI::App& bench) {
  auto options = std::make_shared<StepOptions>();
  CLI::App* command = bench.add_subcommand("step", "forward, backward and update of a model, by stage and by row");
  const auto number = [&](const char* name, int64_t& value, int64_t least, const char* text) {
    return command->add_option(name, value, text)->capture_default_str()->check(at_least(least));
  };
  CLI::Option* model =
      command->add_option("--model", options->model, "mlp, or bert-tiny, bert-mini, bert-small, bert-base, bert-large")
          ->capture_default_str();
  CLI::Option* config = command->add_option("--config", options->config, "config.json of a BERT")->excludes(model);
  config->check(
      [](const std::string& path) { return path.empty() ? "the name of a file, given none" : std::string(); });
  CLI::Option* layers = command->add_option("--layers", options->layers, "an MLP's widths")
                            ->capture_default_str()
                            ->type_name("WIDTHS")
                            ->check(are_widths(2));
  number("--batch", options->batch, 1, "samples or sequences");
  CLI::Option* sequence = number("--sequence", options->sequence, 1, "tokens of a sequence");
  CLI::Option* masked = number("--masked", options->masked, 1,
                               "tokens of a sequence that are guessed; unless given, no more than it has");
  CLI::Option* ragged =
      command->add_flag("--ragged", options->ragged,
                        "sequences of 2 to --sequence - 1 tokens, all as likely, laid end to end without padding");
  CLI::Option* dropout = command->add_option("--dropout", options->dropout,
                                             "part of all elements; where not given, 0, or what --config says");
  command->add_option("--precision", options->precision, "as in cinta train")->capture_default_str();
  command
      ->add_option("--without", options->without, "fused rows to do with others, to see their worth: attention,linear")
      ->delimiter(',')
      ->type_name("ROWS");
  number("--warmup", options->warmup, 0, "steps before the clock starts");
  number("--steps", options->steps, 1, "steps under the clock, and as many again by row");
  add_threads(*command, options->threads);
  command->add_option("--plot", options->plot, "SVG file: the time by row")->check(place_for_a_file());
  command->add_flag("--json", options->json, "one object");
  options->dropout_given = dropout;
  options->masked_given = masked;
  options->of_bert = {config, sequence, masked, ragged, dropout};
  options->of_mlp = {layers};
  set_work(*command, [options] { bench_step(*options); });
}

void add_rows(CLI::App& bench) {
  auto options = std::make_shared<RowsOptions>();
  CLI::App* command = bench.add_subcommand("rows", "every kernel row alone");
  command
      ->add_option("--sizes", options->sizes,
                   "mini, base: as in a step of that BERT; large: beyond most caches, some GB; several with commas")
      ->capture_default_str()
      ->delimiter(',');
  add_threads(*command, options->threads);
  command->add_flag("--json", options->json, "one object");
  command->add_option("--plot", options->plot, "SVG file: how near each row is to its limit")
      ->check(place_for_a_file());
  set_work(*command, [options] {
    if (options->threads > 0) set_threads(options->threads);
    bench_rows(*options);
  });
}

void add_precision(CLI::App& bench, CLI::App& app) {
  auto options = std::make_shared<PrecisionOptions>();
  CLI::App* command = bench.add_subcommand(
      "precision", "one training in several precisions: cinta bench precision -- train mlp --data FILE");
  command->add_option("--modes", options->modes, "precisions, each with :LOSS_SCALE if wanted")->capture_default_str();
  command->add_option("--seeds", options->seeds, "runs of each mode")->capture_default_str()->check(at_least(1));
  command->add_option("--objective", options->objective, "number of the evaluation")->capture_default_str();
  command->add_option("--output_dir", options->directory, "goes on with what is there")->capture_default_str();
  command->add_flag("--json", options->json, "one object");
  command->add_option("command", options->command, "behind --: the training that all modes share");
  set_work(*command, [options, &app] {
    std::ranges::transform(options->command, options->command.begin(), as_given);
    bench_precision(*options, app);
  });
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "bench", "how fast this machine trains: a step, or every kernel row alone; how well in which precision");
  command->require_subcommand(1);
  add_step(*command);
  add_rows(*command);
  add_precision(*command, app);
}

}  // namespace cinta::tools
