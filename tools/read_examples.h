// The rows of numbers that --data and --labels name, for training, evaluation and prediction.
#pragma once
#include <string>

#include "cinta/data/examples.h"

namespace cinta::tools {

/// A CSV whose last column is the class, an IDX file of images when `labels` names one of classes, or digits drawn here
/// for "generated". `features` and `classes` are those of the rows that the model was trained on; 0: these are they,
/// and say it themselves. Throws FileError for rows of others.
data::Examples read_examples(const std::string& data, const std::string& labels, int64_t features = 0,
                             int64_t classes = 0);

/// Said of a file of rows that has one.
inline constexpr const char* header_note = ": line 1 is taken for a header";

}  // namespace cinta::tools
