// The table of defaults in docs/options.md is that of the command.
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command_helpers.h"
#include "setting_text.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

/// The cells of a Markdown table's row.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream row(line.substr(1));
  for (std::string cell; std::getline(row, cell, '|');) cells.push_back(cell.substr(1, cell.size() - 2));
  return cells;
}

}  // namespace

TEST_CASE("the defaults that the documents state are those of the command", "[option_defaults]") {
  std::istringstream page(read_bytes(std::string(CINTA_SOURCE_DIR) + "/docs/options.md"));
  std::map<std::string, nlohmann::json> shown;
  std::vector<std::string> tasks;
  size_t options = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| ")) continue;
    const std::vector<std::string> cells = cells_of(line);
    REQUIRE(cells.size() == 7);
    if (tasks.empty()) {
      tasks.assign(cells.begin() + 2, cells.end() - 1);
      for (const std::string& task : tasks)
        shown[task] = nlohmann::json::parse(run_cinta({"config", "train", task, "--json"}).out);
      continue;
    }
    for (size_t i = 0; i < tasks.size(); ++i) {
      INFO(cells[0] << " of " << tasks[i]);
      CHECK(setting_text(shown.at(tasks[i]).at(cells[0])) == cells[i + 2]);
    }
    ++options;
  }
  CHECK(options > 10);
}
