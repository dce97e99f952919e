// The labelled rows that --data and --labels name.
#pragma once
#include <string>

#include "cinta/data/examples.h"

namespace cinta::tools {

/// A CSV whose last column is the class, an IDX file of images when `labels` names one of classes, or digits drawn here
/// for "generated".
data::Examples read_examples(const std::string& data, const std::string& labels);

}  // namespace cinta::tools
