// A classifier's confusion, for the eye and as JSON.
#pragma once
#include <nlohmann/json.hpp>

#include "cinta/models/bert/config.h"
#include "cinta/train/text_classify_task.h"

namespace cinta::tools {

/// A line for each class: how often its samples were taken for each. Nothing of no class or of more than 20.
void print_confusion(const train::Confusion& confusion, const models::BertConfig& config);

/// {"labels": names, "confusion_matrix": [[..], ..]}, the true class by row. Of no class, an empty object.
nlohmann::ordered_json confusion_json(const train::Confusion& confusion, const models::BertConfig& config);

}  // namespace cinta::tools
