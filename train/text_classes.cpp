// A head's rows belong to its names: they are kept together or not at all.
#include "cinta/train/text_classes.h"

#include <algorithm>
#include <iterator>

#include "cinta/data/labelled_text.h"
#include "cinta/models/model_file.h"

namespace cinta::train {
namespace {

std::vector<std::string> numbers_below(int64_t count) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(join(i));
  return out;
}

}  // namespace

std::vector<std::string> class_names(const models::BertConfig& config) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < config.num_labels; ++i) out.push_back(config.label_name(i));
  return out;
}

bool has_named_classes(const models::BertConfig& config) {
  models::BertConfig unnamed = config;
  unnamed.label_names.clear();
  return class_names(config) != class_names(unnamed);
}

std::vector<std::string> spoken_names(const models::BertConfig& config) {
  std::vector<std::string> out = class_names(config);
  if (!has_named_classes(config)) std::ranges::move(numbers_below(config.num_labels), std::back_inserter(out));
  return out;
}

void name_numbers(std::vector<std::string>& labels, const models::BertConfig& config) {
  if (has_named_classes(config)) return;
  const std::vector<std::string> numbers = numbers_below(config.num_labels);
  for (std::string& label : labels)
    if (const auto found = std::ranges::find(numbers, label); found != numbers.end())
      label = config.label_name(found - numbers.begin());
}

TextClasses choose_classes(const std::vector<std::string>& labels, const std::string& directory) {
  if (directory.empty() || models::model_name(directory) != "BertForSequenceClassification") return {labels};
  const models::BertConfig config = models::read_config(directory);
  const std::vector<std::string> names = class_names(config);
  const auto all_among = [&](const std::vector<std::string>& classes) {
    return std::ranges::all_of(
        labels, [&](const std::string& label) { return std::ranges::find(classes, label) != classes.end(); });
  };
  if (all_among(names)) return {names, true};
  const std::vector<std::string> numbers = numbers_below(config.num_labels);
  const bool numbered = all_among(numbers);
  if (!has_named_classes(config) && (numbered || names.size() == labels.size())) {
    const std::vector<std::string>& taken = numbered ? numbers : labels;
    return {
        taken, true,
        join(directory, ": its classes have no names; in their order they are taken to be ", data::first_few(taken))};
  }
  return {labels, false,
          join(directory, ": its classes (", data::first_few(names), ") are not the data's (", data::first_few(labels),
               "), for which a new classifier is learnt")};
}

}  // namespace cinta::train
