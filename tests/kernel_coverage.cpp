// Every kernel row that backends/kernels/ declares is filled by the CPU and by the reference, and a test speaks of it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>

#include "cinta/backends/kernel.h"
#include "source_tree.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

struct DeclaredRow {
  std::string name;      ///< what the table calls it: "gelu_backward"
  std::string variable;  ///< the C++ object that holds it: gelu
  std::string header;
};

/// Rows as the headers declare them: `Kernel<...> name{"name"};`, or with a second name for the backward row.
std::vector<DeclaredRow> declared_rows(const std::string& where = "backends/kernels/") {
  std::vector<DeclaredRow> rows;
  const std::regex declaration(R"re(([A-Za-z_0-9]+)\{\s*"([a-z_0-9]+)"(?:\s*,\s*"([a-z_0-9]+)")?)re");
  for (const auto& [path, file] : source_tree()) {
    if (!path.starts_with(where)) continue;
    std::string text;
    for (const auto& line : file.lines) text += line + "\n";
    for (std::sregex_iterator match(text.begin(), text.end(), declaration), end; match != end; ++match) {
      rows.push_back({(*match)[2], (*match)[1], path});
      if ((*match)[3].matched) rows.push_back({(*match)[3], (*match)[1], path});
    }
  }
  return rows;
}

bool filled(const std::string& name, Device device) {
  const auto& table = kernel_table();
  return std::any_of(table.begin(), table.end(), [&](auto* row) { return row->name() == name && row->has(device); });
}

/// Whether a test names the row's object, as in kernels::gelu, or the row itself in quotes.
bool tested(const DeclaredRow& row) {
  const std::regex mention("\\b(kernels|k)::" + row.variable + "\\b|\"" + row.name + "\"");
  for (const auto& [path, file] : source_tree()) {
    if (!path.starts_with("tests/")) continue;
    for (const auto& line : file.lines) {
      if (line.find(row.variable) != line.npos && std::regex_search(line, mention)) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("every declared kernel row has a cpu column, a reference column and a test", "[structure]") {
  const auto rows = declared_rows();
  REQUIRE(rows.size() > 40);
  for (const auto& row : rows) {
    INFO(row.header << ": " << row.name);
    CHECK(filled(row.name, reference));
    CHECK(filled(row.name, cpu));
    CHECK(tested(row));
  }
}

TEST_CASE("every row in the table is declared in backends/kernels/, once", "[structure]") {
  const auto rows = declared_rows(), recipe = declared_rows("tests/recipe_op.cpp");
  for (const KernelRow* row : kernel_table()) {
    INFO(row->name());
    const auto times = [row](const std::vector<DeclaredRow>& in) {
      return std::count_if(in.begin(), in.end(), [row](const auto& other) { return other.name == row->name(); });
    };
    CHECK((times(rows) == 1 || (times(rows) == 0 && times(recipe) == 1)));  // the recipe's row stands in no header
  }
}
