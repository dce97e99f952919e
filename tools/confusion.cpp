// Rows and columns in the order of the classes.
#include "tools/confusion.h"

#include <cstdio>
#include <span>

namespace cinta::tools {

void print_confusion(const train::Confusion& confusion, const models::BertConfig& config) {
  constexpr int64_t most = 20;  // a larger table is no table for the eye
  if (confusion.classes == 0 || confusion.classes > most) return;
  std::printf("%-20s guessed as 0, 1, ..\n", "class");
  for (int64_t row = 0; row < confusion.classes; ++row) {
    std::printf("%2lld %-17.17s", static_cast<long long>(row), config.label_name(row).c_str());
    for (int64_t column = 0; column < confusion.classes; ++column)
      std::printf(" %6lld",
                  static_cast<long long>(confusion.counts[static_cast<size_t>(row * confusion.classes + column)]));
    std::printf("\n");
  }
}

nlohmann::ordered_json confusion_json(const train::Confusion& confusion, const models::BertConfig& config) {
  if (confusion.classes == 0) return nlohmann::ordered_json::object();
  nlohmann::ordered_json names = nlohmann::ordered_json::array(), rows = names;
  const auto width = static_cast<size_t>(confusion.classes);
  for (size_t row = 0; row < width; ++row) {
    names.push_back(config.label_name(static_cast<int64_t>(row)));
    rows.push_back(std::span(confusion.counts).subspan(row * width, width));
  }
  return {{"labels", names}, {"confusion_matrix", rows}};
}

}  // namespace cinta::tools
