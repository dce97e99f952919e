// Two small trainings for tests: a perceptron on generated digits, a BERT with dropout on made-up sequences.
#pragma once
#include <csignal>
#include <filesystem>
#include <map>

#include "bert_helpers.h"
#include "cinta/data/digits.h"
#include "cinta/train/classify_task.h"
#include "cinta/train/loop.h"
#include "cinta/train/masked_task.h"
#include "scratch.h"
#include "vocabularies.h"

namespace cinta::testing {

using Names = std::vector<std::string>;

/// The first line of such a run's metrics.
inline const train::MetricFields small_header{{"model", std::string("small")}};

/// 160 rows to train on: ten batches of 16 are an epoch.
inline data::Split small_digits() { return data::split(data::generate_digits(200, 4), 0.2, 4); }

inline train::ClassifyTask small_classifier(data::Split split = small_digits(), int64_t batch_size = 16) {
  const data::Standardizer identity{std::vector<double>(64, 0), std::vector<double>(64, 1)};
  return train::ClassifyTask(std::move(split), identity, {24}, batch_size, 9);
}

/// 40 + 8 sequences of 12 tokens; most tokens follow from their neighbours.
inline const data::MaskedCorpus& small_corpus() {
  static const data::MaskedCorpus corpus = [] {
    const data::WordPiece tokenizer(letters());
    auto sequences = [](int64_t count, int64_t offset) {
      constexpr int64_t length = 12;
      data::SequenceArrays out;
      for (int64_t row = offset; row < offset + count; ++row) {
        const int64_t used = row % 3 == 0 ? 12 : 5 + row % 7;
        for (int64_t i = 0; i < length; ++i)
          out.ids.push_back(static_cast<int32_t>(i == 0          ? 2
                                                 : i == used - 1 ? 3
                                                 : i < used      ? 5 + (row * 7 + i * (1 + row % 3)) % 26
                                                                 : 0));
        out.lengths.push_back(static_cast<int32_t>(used));
      }
      return data::sequences_of(length, out);
    };
    return data::MaskedCorpus{tokenizer, sequences(40, 0), sequences(8, 40)};
  }();
  return corpus;
}

inline train::MaskedTask small_masked(double dropout = 0.1) {
  return train::MaskedTask(small_corpus(), small_config(dropout), 4, 9);
}

/// A task that does what another does; tests override a part.
struct ForwardingTask : train::Task {
  explicit ForwardingTask(train::Task& task) : task(task) {}
  models::Module& model() override { return task.model(); }
  Random* random() override { return task.random(); }
  const data::BatchSource& batches() const override { return task.batches(); }
  int64_t samples_per_batch() const override { return task.samples_per_batch(); }
  bool packs_samples() const override { return task.packs_samples(); }
  train::Forward forward(const data::Batch& batch) override { return task.forward(batch); }
  train::MetricFields evaluate_until(train::StopFlag stop) override { return task.evaluate_until(stop); }
  void save(train::CheckpointWriter& writer) override { task.save(writer); }
  models::LoadReport load(const std::string& directory) override { return task.load(directory); }
  int64_t progress_items(const data::Batch& batch) const override { return task.progress_items(batch); }
  const char* progress_unit() const override { return task.progress_unit(); }
  const char* accuracy_name() const override { return task.accuracy_name(); }
  train::Task& task;
};

/// Raises its flag, for RunOptions::stop, when forward has been asked for `forwards` times.
struct StoppingTask : ForwardingTask {
  StoppingTask(train::Task& task, int64_t forwards) : ForwardingTask(task), left(forwards) {}
  train::Forward forward(const data::Batch& batch) override {
    if (--left == 0) stop = SIGTERM;
    return task.forward(batch);
  }
  int64_t left;
  volatile std::sig_atomic_t stop = 0;
};

/// A step is three micro-batches; step 13 and step 30 are inside an epoch and inside a logging interval.
inline train::RunOptions small_run(const std::string& directory) {
  train::RunOptions options;
  options.output_dir = directory;
  options.max_steps = 30;
  options.accumulation_steps = 3;
  options.optimizer.rate = 5e-3;
  options.schedule = {.kind = optim::ScheduleKind::linear, .warmup = 4};
  options.logging_steps = 4;
  options.eval_steps = 6;
  options.quiet = true;
  return options;
}

/// The metrics and the files of the last checkpoint, by name.
inline std::map<std::string, std::string> left_behind(const std::string& directory, int64_t step = 30) {
  std::map<std::string, std::string> out;
  out["metrics.jsonl"] = read_bytes(directory + "/metrics.jsonl");
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/checkpoint-" + std::to_string(step)))
    out[entry.path().filename()] = read_bytes(entry.path());
  return out;
}

/// The names of the files that differ.
inline Names differing(const std::map<std::string, std::string>& left,
                       const std::map<std::string, std::string>& right) {
  Names out;
  for (const auto& [name, bytes] : left)
    if (!right.contains(name) || right.at(name) != bytes) out.push_back(name);
  for (const auto& [name, bytes] : right)
    if (!left.contains(name)) out.push_back(name);
  return out;
}

}  // namespace cinta::testing
