// Results as a Markdown table, for benchmarks/results/.
#pragma once
#include "common.h"

namespace benchmark {

inline std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

inline std::string row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + "\n";
}
inline std::string heading(const std::vector<std::string>& cells) {
  return row(cells) + row(std::vector<std::string>(cells.size(), "---"));
}

/// "Measured 2024-06-07 on AMD EPYC, 2 threads, GCC 12.2.0, oneDNN 2.6.3."
inline std::string measured() {
  const Json about = machine();
  return "Measured " + date() + " on " + about["processor"].get<std::string>() + ", " +
         std::to_string(about["threads"].get<int>()) + " threads, " + about["build"].get<std::string>() + ".";
}

/// Prints `text` and writes it to the file `path`, if one is named.
inline void publish(const std::string& path, const std::string& text) {
  std::printf("%s", text.c_str());
  if (!path.empty()) std::ofstream(path) << text;
}

}  // namespace benchmark
