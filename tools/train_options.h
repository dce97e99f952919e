// The options that every kind of training shares, under the names that users of the HF Trainer know.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cinta/data/loader.h"
#include "cinta/train/callbacks.h"
#include "cinta/train/loop.h"
#include "cinta/train/plot.h"
#include "tools/report_options.h"
#include "tools/resolution.h"

namespace cinta::tools {

/// --threads of a command: 0 leaves them as they are.
void add_threads(CLI::App& command, int& threads);
/// A check of an option's number.
CLI::Validator at_least(int64_t least);
/// A check of the name of a file that will be written: its directory can be written to.
CLI::Validator place_for_a_file();

struct TrainOptions {
  std::string params;        ///< read before the command line is (tools/settings.h)
  std::string trial_result;  ///< file (train/trial.h)
  bool await_verdict = false;
  bool as_json = false;
  std::string data;
  train::RunOptions run;
  ReportOptions reports;
  std::string schedule = "linear";
  std::string gradient_checkpointing = "none";
  std::string precision = "fp32", loss_scale;
  std::string eval_strategy = "steps", save_strategy = "steps";
  std::string early_stopping, best_metric = "eval_loss";
  bool greater_is_better = false, load_best = false;
  int64_t save_total_limit = 0, fast_dev_run = 0;
  std::string device = "cpu";
  int64_t batch_size = 32;
  double epochs = 0;
  uint64_t seed = 0;
  bool padding_free = false, balance_lengths = false;
  int threads = 0;
  double warmup_steps = 0;  ///< below 1: part of all steps
  int64_t default_max_steps = 0;
  const CLI::App* command = nullptr;  ///< to see which options were given

  /// Adds the options to a command; the members' values are the defaults.
  void add_to(CLI::App& command);
  /// Adds those for models of texts.
  void add_packing(CLI::App& command);
  /// The run's numbers, once the command line is read. `samples`: how many there are to train on; without them, what
  /// depends on it is unknown. Throws ValueError for options that do not go together.
  Resolution resolution(std::optional<int64_t> samples = {}) const;
  /// The same, and all else that a run needs: threads, callbacks, signals.
  train::RunOptions resolve(int64_t samples) const;
  /// Refuses options that others leave without effect.
  void refuse_unused() const;
  /// Of the batches to train on. Padded ones are all equally large, and nothing is balanced.
  data::Balance balance() const {
    return padding_free && balance_lengths ? data::Balance::tokens : data::Balance::samples;
  }
  /// Refuses what only a run's parts would, before data is read for them.
  void check_values() const;
  /// Null without --early_stopping.
  std::shared_ptr<train::EarlyStopping> make_early_stopping() const;
  void add_callbacks(train::RunOptions& out) const;
  train::WatchedMetric watched_metric() const;
  std::string loss_scale_text() const;
  /// The first line of metrics.jsonl, `more` at its end. `data_crc32` tells the data from others under the same name.
  train::MetricFields header(const std::string& task, uint32_t data_crc32, const train::MetricFields& more = {},
                             data::Balance balance = data::Balance::samples) const;
  /// After a run: model files into its directory and the loss curve beside them. Prints that it was stopped or given
  /// up, or with --json what came of it, `more` included, as one object. True when the rest is the caller's to print.
  bool publish(const train::RunResult& result, const std::string& directory,
               const std::vector<train::PlotReference>& references, const nlohmann::ordered_json& more) const;
};

}  // namespace cinta::tools
