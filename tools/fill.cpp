// `cinta fill "std::[MASK]<int> v;"`.
#include "tools/fill.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "cinta/autograd/mode.h"
#include "cinta/ops/softmax.h"
#include "tools/commands.h"
#include "tools/model_options.h"
#include "tools/text_options.h"
#include "tools/train_options.h"

namespace cinta::tools {
namespace {

struct Options {
  std::string text;
  ModelOptions model{"runs/headers-bert"};
  int64_t top = 3;
  TextOptions reading;
  bool as_json = false;
};

void fill_masks(const Options& options) {
  const models::BertConfig config = models::read_config(options.model.directory);
  const data::WordPiece tokenizer = options.reading.load_tokenizer(options.model, config);
  models::BertForMaskedLM model(config);
  const models::LoadReport report = options.model.load(model);
  const auto logits = [&](const models::TokenBatch& batch, const Tensor& rows) { return model(batch, rows); };
  const std::string text = options.reading.utf8(options.text);
  const auto guesses = fill(model, logits, tokenizer, text, options.top);
  if (!options.as_json) return print_filled(text, guesses);
  nlohmann::ordered_json all{{"text", text}, {"masks", nlohmann::json::array()}};
  for (const std::vector<Guess>& one : guesses) {
    auto& list = all["masks"].emplace_back(nlohmann::json::array());
    for (const Guess& guess : one) list.push_back({{"token", guess.token}, {"probability", guess.probability}});
  }
  all["load"] = json_of(report);
  std::printf("%s\n", all.dump().c_str());
}

}  // namespace

std::vector<std::vector<Guess>> fill(models::BertBase& model, const MaskedLogits& masked_logits,
                                     const data::WordPiece& tokenizer, const std::string& text, int64_t count) {
  autograd::NoGrad off;
  const data::Encoding encoding = tokenizer.encode_framed(text);
  const int64_t length = static_cast<int64_t>(encoding.ids.size());
  const int32_t mask = tokenizer.vocabulary().id("[MASK]");
  std::vector<int64_t> ids(encoding.ids.begin(), encoding.ids.end()), places;
  for (int64_t i = 0; i < length; ++i)
    if (ids[static_cast<size_t>(i)] == mask) places.push_back(i);
  require(!places.empty(), "fill", Where(), "the text needs a [MASK], given '", text, "'");
  require(length <= model.config().max_position_embeddings, "fill", Where(), "at most ",
          model.config().max_position_embeddings, " tokens, given ", length, ": '", text, "'");
  const bool training = model.training();
  model.train(false);
  const Device device = model.parameters()[0].tensor.device();
  const Tensor logits = masked_logits({.ids = from_values(ids, {1, length}, device)},
                                      from_values(places, {static_cast<int64_t>(places.size())}, device));
  model.train(training);
  const std::vector<float> probabilities = to_vector<float>(softmax(logits));
  const size_t width = static_cast<size_t>(logits.size(1)),
               vocabulary = static_cast<size_t>(tokenizer.vocabulary().size());
  std::vector<std::vector<Guess>> out(places.size());
  for (size_t place = 0; place < places.size(); ++place) {
    const float* row = probabilities.data() + place * width;
    std::vector<int32_t> order(vocabulary);
    std::iota(order.begin(), order.end(), 0);
    const auto best = std::min<int64_t>(count, static_cast<int64_t>(vocabulary));
    std::partial_sort(order.begin(), order.begin() + best, order.end(),
                      [&](int32_t a, int32_t b) { return row[a] > row[b]; });
    for (const int32_t token : std::span(order).first(static_cast<size_t>(best)))
      out[place].push_back({tokenizer.vocabulary().token(token), row[token]});
  }
  return out;
}

void print_filled(const std::string& text, const std::vector<std::vector<Guess>>& guesses) {
  std::printf("%s\n", text.c_str());
  for (size_t place = 0; place < guesses.size(); ++place) {
    if (place > 0) std::printf("  --\n");
    for (const Guess& guess : guesses[place])
      std::printf("  %5.1f %%  %s\n", 100.0 * guess.probability, guess.token.c_str());
  }
}

void add_fill(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("fill", "fill in the [MASK] of a text");
  command->add_option("text", options->text, "e.g. \"std::[MASK]<int> v;\"")->required();
  options->model.add_to(*command)->capture_default_str();
  command->add_option("--top", options->top, "guesses to show")->capture_default_str()->check(at_least(1));
  options->reading.add_to(*command);
  options->reading.add_final_sigma(*command);
  command->add_flag("--json", options->as_json, "one object");
  set_work(*command, [options] { fill_masks(*options); });
}

}  // namespace cinta::tools
