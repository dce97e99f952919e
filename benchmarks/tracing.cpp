// What it costs to look on: a BERT's training with every step in a timeline (`--trace`) and its report kept up to date,
// against the same training without either, in turns in one process. Wanted: at most 1.05 times its time.
//
// A run's time is that of its steps, their lines of metrics, the versions of the report written meanwhile and the
// timeline's file, which its last step writes.
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "cinta/data/masked_corpus.h"
#include "cinta/train/loop.h"
#include "cinta/train/masked_task.h"
#include "cinta/train/report_page.h"
#include "cinta/train/reports.h"
#include "markdown.h"
#include "workload.h"

namespace benchmark {
namespace {

constexpr double wanted_time = 1.05;

/// Random tokens: what they say changes nothing in the time of a step.
data::MaskedCorpus random_corpus(int64_t vocabulary, int64_t length) {
  std::vector<std::string> tokens;
  for (std::string_view special : data::Vocabulary::specials) tokens.emplace_back(special);
  const auto specials = static_cast<int64_t>(tokens.size());
  for (int64_t i = specials; i < vocabulary; ++i) tokens.push_back("token" + std::to_string(i));
  const data::WordPiece tokenizer{data::Vocabulary(tokens)};
  const int32_t begin = tokenizer.vocabulary().id("[CLS]"), end = tokenizer.vocabulary().id("[SEP]");
  const auto sequences = [&](const char* name, int64_t count) {
    data::SequenceArrays out;
    const std::vector<int64_t> drawn = random_indices(name, 0, count * length, vocabulary - specials);
    for (int64_t i = 0; i < count * length; ++i)
      out.ids.push_back(i % length == 0            ? begin
                        : i % length == length - 1 ? end
                                                   : static_cast<int32_t>(specials + drawn[static_cast<size_t>(i)]));
    out.lengths.assign(static_cast<size_t>(count), static_cast<int32_t>(length));
    return data::sequences_of(length, std::move(out));
  };
  return {tokenizer, sequences("train", 1024), sequences("held out", 8)};
}

/// A directory for what the runs write, removed at the end.
struct Folder {
  ~Folder() { std::filesystem::remove_all(path); }
  const std::string path = std::filesystem::temp_directory_path() / ("cinta-tracing-" + std::to_string(::getpid()));
};

class Race {
 public:
  Race(const models::BertConfig& config, int64_t batch, int64_t sequence, int64_t steps)
      : config_(config), batch_(batch), steps_(steps), corpus_(random_corpus(config.vocab_size, sequence)) {}

  /// Milliseconds of a step.
  double run(bool watched) {
    train::MaskedTask task(corpus_, config_, batch_, workload_seed);
    train::RunOptions options;
    options.output_dir = folder_.path + "/run";
    options.max_steps = steps_;
    options.overwrite = options.quiet = true;
    if (watched)
      options.callbacks = {std::make_shared<train::TraceReport>(folder_.path + "/trace.json", 1, steps_),
                           std::make_shared<train::ReportPage>()};
    return 1e3 * train::run(task, options, {{"task", std::string("bert")}}).seconds / static_cast<double>(steps_);
  }

 private:
  models::BertConfig config_;
  int64_t batch_, steps_;
  data::MaskedCorpus corpus_;
  Folder folder_;
};

void main_program(Options options) {
  const std::string name = options.get("model", std::string("tiny"));
  models::BertConfig config = models::BertConfig::named(name);
  config.vocab_size = options.get("vocab", int64_t{4096});
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  const int64_t batch = options.get("batch", int64_t{32}), sequence = options.get("sequence", int64_t{64}),
                steps = options.get("steps", int64_t{200}), rounds = options.get("rounds", int64_t{5});
  const std::string json = options.get("json", std::string()), markdown = options.get("markdown", std::string());
  set_threads(static_cast<int>(options.get("threads", int64_t{threads()})));
  options.finish();
  config.max_position_embeddings = std::max(config.max_position_embeddings, sequence);

  Race race(config, batch, sequence, steps);
  race.run(true);
  std::vector<double> plain, watched, ratio;
  double noise = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    plain.push_back(race.run(false));
    watched.push_back(race.run(true));
    ratio.push_back(watched.back() / plain.back());
    if (round > 0) noise = std::max(noise, std::abs(plain.back() / plain[plain.size() - 2] - 1));
    std::fprintf(stderr, "round %lld of %lld: %.2f ms plain, %.2f watched\n", static_cast<long long>(round + 1),
                 static_cast<long long>(rounds), plain.back(), watched.back());
  }
  const double cost = Statistics(ratio).median;
  const std::string shape = "BERT-" + name + ", " + std::to_string(batch) + " x " + std::to_string(sequence) +
                            " tokens, fp32, AdamW, runs of " + std::to_string(steps) + " steps, " +
                            std::to_string(rounds) + " rounds in turns.";
  std::string text = heading({"step", "ms (median)", "best", "over plain (median)"});
  text += row({"plain", number(Statistics(plain).median, 2), number(Statistics(plain).best, 2), "1"});
  text += row({"every step traced, report kept up to date", number(Statistics(watched).median, 2),
               number(Statistics(watched).best, 2), number(cost, 3)});
  text += "\nWatched over plain: " + number(cost, 3) + " (wanted <= " + number(wanted_time, 2) +
          "): " + (cost <= wanted_time ? "met" : "**missed**") + ". The plain runs of two rounds differ by up to " +
          number(100 * noise, 1) + " %.\n";
  publish(markdown, measured() + " " + shape + "\n\n" + text);
  write(json, {{"date", date()},
               {"machine", machine()},
               {"workload", shape},
               {"plain_ms", plain},
               {"watched_ms", watched},
               {"watched_over_plain", ratio},
               {"greatest_difference_of_plain_runs", noise},
               {"met", cost <= wanted_time}});
}

}  // namespace
}  // namespace benchmark

int main(int argc, char** argv) {
  return benchmark::guarded([&] { benchmark::main_program(benchmark::Options(argc, argv)); });
}
