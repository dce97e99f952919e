// `cinta train mlp`, and what to train instead: train_bert.cpp, train_characters.cpp, train_classify.cpp.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "cinta/data/file.h"
#include "cinta/train/checkpoint_names.h"
#include "cinta/train/classify_task.h"
#include "tools/commands.h"
#include "tools/read_examples.h"
#include "tools/settings_file.h"
#include "tools/train_options.h"
#include "tools/widths.h"

namespace cinta::tools {
namespace {

struct MlpOptions : TrainOptions {
  std::string labels, test_data, test_labels;
  std::vector<std::string> hidden{"128,64"};  ///< read as one list
  int64_t seeds = 1;
};

/// "200 rows of 4 features, 4 classes (no row is of class 0, 2)"
std::string described(const data::Examples& examples) {
  constexpr size_t most = 10;  // of the classes that have no row are named
  std::vector<bool> has_row(static_cast<size_t>(examples.classes));
  for (const int64_t label : examples.labels) has_row[static_cast<size_t>(label)] = true;
  std::string absent;
  size_t count = 0;
  for (size_t i = 0; i < has_row.size(); ++i)
    if (!has_row[i] && ++count <= most) absent += join(count == 1 ? " (no row is of class " : ", ", i);
  if (count > most) absent += join(" and ", count - most, " more");
  return join(examples.count, " rows of ", examples.features, " features, ", examples.classes, " classes", absent,
              count > 0 ? ")" : "");
}

/// The file of the test rows beside that of the training rows, or a seeded part of the latter.
data::Split make_split(const MlpOptions& options, const data::Examples& examples, const data::Examples& test,
                       uint64_t seed) {
  return options.test_data.empty() ? data::split(examples, 0.2, seed) : data::Split{examples, test};
}

ResolvedValues resolved(const MlpOptions& options) {
  ResolvedValues out = options.resolution().values;
  require(options.gradient_checkpointing == "none", "train", Where(), "an MLP has no layers to checkpoint, given ",
          "--gradient_checkpointing ", options.gradient_checkpointing);
  require(options.seeds == 1 || options.trial_result.empty(), "train", Where(), "--result is that of one run, given ",
          "--seeds ", options.seeds);
  require(options.test_labels.empty() || !options.test_data.empty(), "train", Where(),
          "--test_labels goes with --test_data");
  return out;
}

void train_mlp(const MlpOptions& options) {
  const data::Examples examples = read_examples(options.data, options.labels);
  const data::Examples test = options.test_data.empty() ? data::Examples()
                                                        : read_examples(options.test_data, options.test_labels,
                                                                        examples.features, examples.classes);
  if (!options.run.quiet) {
    std::fprintf(stderr, "%s: %s\n", options.data.c_str(), described(examples).c_str());
    for (const auto& [rows, path] : {std::pair{&examples, &options.data}, {&test, &options.test_data}})
      if (rows->has_header) std::fprintf(stderr, "%s%s\n", path->c_str(), header_note);
  }
  uint32_t crc32 = 0;
  for (const data::Examples* part : {&examples, &test})
    crc32 = data::crc32_of(std::as_bytes(std::span(part->labels)),
                           data::crc32_of(std::as_bytes(std::span(part->inputs)), crc32));
  std::vector<int64_t> hidden;
  for (const std::string& some : options.hidden) std::ranges::copy(widths_of(some), std::back_inserter(hidden));
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < options.seeds; ++i) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(i);
    data::Split split = make_split(options, examples, test, seed);
    const data::Standardizer standardizer = data::Standardizer::learn(split.train);
    for (data::Examples* part : {&split.train, &split.test}) standardizer.apply(*part);
    const int64_t train_count = split.train.count, test_count = split.test.count;
    train::ClassifyTask task(std::move(split), standardizer, hidden, options.batch_size, seed,
                             parse_device(options.device));
    MlpOptions of_seed = options;
    of_seed.seed = seed;
    train::RunOptions run = options.resolve(train_count);
    if (i > 0 && !run.output_dir.empty()) run.output_dir += "/" + train::seed_prefix + std::to_string(seed);
    const train::RunResult result = train::run(task, run, of_seed.header("mlp", crc32));
    const double accuracy = 100 * train::number(result.evaluation, "eval_accuracy");
    if (options.publish(result, run.output_dir, {}, {{"seed", seed}}))
      std::printf("seed %llu: %lld to train on, %lld to test; test accuracy %.2f %% after %lld steps in %.1f s\n",
                  static_cast<unsigned long long>(seed), static_cast<long long>(train_count),
                  static_cast<long long>(test_count), accuracy, static_cast<long long>(result.steps), result.seconds);
    if (result.stopped_by) return;
    sum += accuracy;
    squares += accuracy * accuracy;
  }
  const double count = static_cast<double>(options.seeds), mean = sum / count;
  const double deviation = std::sqrt(std::max(0.0, (squares - count * mean * mean) / (count - 1)));
  if (options.as_json) {
    if (options.seeds > 1)
      std::printf(
          "%s\n",
          train::json_of({{"seeds", options.seeds}, {"mean_eval_accuracy", mean / 100}, {"deviation", deviation / 100}})
              .c_str());
    return;
  }
  if (options.seeds > 1)
    std::printf("mean of %lld seeds: test accuracy %.2f +- %.2f %%\n", static_cast<long long>(options.seeds), mean,
                deviation);
  if (!options.run.output_dir.empty() && options.fast_dev_run == 0)
    std::printf("weights, metrics and loss curve: %s\n", options.run.output_dir.c_str());
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* train = app.add_subcommand("train", "train a model")->require_subcommand(1);
  train->add_option_function<std::string>(
      std::string("--") + task_key, [](const std::string&) {},
      "what to train, instead of the command's word; the files of --config and --params may say it too: \"task\"");

  auto mlp = std::make_shared<MlpOptions>();
  mlp->batch_size = 64;
  mlp->run.optimizer.rate = 1e-3;
  mlp->epochs = 30;
  mlp->run.max_grad_norm = 0;
  CLI::App* mlp_command =
      train->add_subcommand("mlp",
                            "an MLP that tells classes apart: a CSV whose last column is the class (0, 1, ..), "
                            "IDX images with --labels, or 'generated' digits");
  mlp->add_to(*mlp_command);
  mlp_command->get_option("--json")->description(
      "print what came of it as one object; of --seeds as one a line, and another of their mean");
  mlp_command->add_option("--labels", mlp->labels, "IDX file of the classes, where --data is one of images");
  mlp_command->add_option("--test_data", mlp->test_data, "file of the test rows; without it a fifth of --data");
  mlp_command->add_option("--test_labels", mlp->test_labels, "IDX file of their classes");
  mlp_command->add_option("--hidden", mlp->hidden, "widths of the hidden layers")
      ->capture_default_str()
      ->type_name("WIDTHS")
      ->check(are_widths());
  mlp_command->add_option("--seeds", mlp->seeds, "runs with consecutive seeds")
      ->capture_default_str()
      ->check(at_least(1));
  set_work(
      *mlp_command, [mlp] { train_mlp(*mlp); }, [mlp] { return resolved(*mlp); });

  add_train_bert(*train);
  add_train_characters(*train);
  add_train_classify(*train);
}

}  // namespace cinta::tools
