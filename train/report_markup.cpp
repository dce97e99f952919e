// Pieces of markup that the sections of the report share.
#include "cinta/train/readable.h"
#include "cinta/train/report_sections.h"

namespace cinta::train {

std::string element(std::string_view name, std::string_view attributes, std::string_view content) {
  std::string out = "<";
  out.append(name);
  if (!attributes.empty()) out.append(" ").append(attributes);
  return out.append(">").append(content).append("</").append(name) += ">";
}

std::string table_row(const std::vector<std::string>& texts, const std::vector<std::string>& numbers,
                      std::string_view cell) {
  std::string out;
  for (const std::string& text : texts) out += element(cell, "", text);
  for (const std::string& number : numbers) out += element(cell, "class=\"n\"", number);
  return element("tr", "", out) + "\n";
}

std::string share_bar(const std::vector<std::pair<double, std::string>>& parts) {
  std::string out;
  for (const auto& [percent, color] : parts)
    if (percent > 0) out += "<i class=\"" + color + "\" style=\"width:" + formatted("%.2f", percent) + "%\"></i>";
  return element("span", "class=\"track\"", out);
}

std::string milliseconds(int64_t nanoseconds) {
  const double value = static_cast<double>(nanoseconds) / 1e6;
  return formatted(value < 9.995 ? "%.2f" : "%.1f", value);
}

}  // namespace cinta::train
