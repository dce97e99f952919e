// A head's rows belong to its names: they are kept together or not at all.
#include "cinta/train/text_classes.h"

#include <algorithm>

#include "cinta/data/labelled_text.h"
#include "cinta/models/model_file.h"

namespace cinta::train {

std::vector<std::string> class_names(const models::BertConfig& config) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < config.num_labels; ++i) out.push_back(config.label_name(i));
  return out;
}

TextClasses choose_classes(const std::vector<std::string>& labels, const std::string& directory) {
  if (directory.empty() || models::model_name(directory) != "BertForSequenceClassification") return {labels};
  models::BertConfig config = models::read_config(directory);
  const std::vector<std::string> names = class_names(config);
  config.label_names.clear();
  const bool unnamed = names == class_names(config);
  const bool known = std::ranges::all_of(
      labels, [&](const std::string& label) { return std::ranges::find(names, label) != names.end(); });
  if (known) return {names, true};
  if (unnamed && names.size() == labels.size())
    return {
        labels, true,
        join(directory, ": its classes have no names; in their order they are taken to be ", data::first_few(labels))};
  return {labels, false,
          join(directory, ": its classes (", data::first_few(names), ") are not the data's (", data::first_few(labels),
               "), for which a new classifier is learnt")};
}

}  // namespace cinta::train
