// What kind of file it is decides which reader takes it.
#include "tools/read_examples.h"

#include "cinta/data/digits.h"
#include "cinta/data/file.h"
#include "cinta/data/idx.h"

namespace cinta::tools {

data::Examples read_examples(const std::string& data, const std::string& labels, int64_t features, int64_t classes) {
  constexpr int64_t generated_count = 1797;  // as many as the UCI set's test part
  const auto check = [&](int64_t found) {
    require<FileError>(features == 0 || found == features, "examples", Where(), data, ": has rows of ", found,
                       " features, expected ", features, " as in training");
  };
  if (labels.empty() && data != "generated") {
    const std::string bytes = data::read_file(data);
    require<FileError>(
        !data::looks_like_idx(bytes), "examples", Where(), data,
        ": looks like IDX images, which take the file of their classes too: --labels, or for --test_data "
        "--test_labels");
    const data::Table table = data::parse_csv(bytes, data, {.last_column = data::class_column}, Where());
    check(table.columns - 1);
    return data::examples_from_table(table, data, classes, Where());
  }
  data::Examples out = labels.empty() ? data::generate_digits(generated_count, 0)
                                      : data::read_idx_examples(data, labels, classes, Where());
  check(out.features);
  return out;
}

}  // namespace cinta::tools
