// The classes that a classifier of texts is to tell apart: those of the model that it begins with, or the data's.
#pragma once
#include <string>
#include <vector>

#include "cinta/models/bert/config.h"

namespace cinta::train {

/// The names of a classifier's classes, by number.
std::vector<std::string> class_names(const models::BertConfig& config);

/// False for a classifier whose classes are called LABEL_0, LABEL_1 .., as they are without names of their own.
bool has_named_classes(const models::BertConfig& config);

/// What data may call the classes: their names, and where these are none of their own their numbers too.
std::vector<std::string> spoken_names(const models::BertConfig& config);
/// Where the classes have no names of their own, gives labels that are their numbers the names that these have.
void name_numbers(std::vector<std::string>& labels, const models::BertConfig& config);

struct TextClasses {
  std::vector<std::string> names;  ///< by number
  bool keeps_head = false;         ///< the model's classifier has a row for each of them, in this order
  std::string note = {};           ///< what is to be told of the choice, if anything
};

/// The classes for data that has `labels`, each once, in order. Where the model in `directory` (empty: there is none)
/// is a classifier that knows all of them, its classes stay as they are. Where its classes have no names, labels that
/// are their numbers (from 0) stand for these, and other labels, if they are as many, for all classes in order. Else
/// the labels are the classes of a new head.
TextClasses choose_classes(const std::vector<std::string>& labels, const std::string& directory);

}  // namespace cinta::train
