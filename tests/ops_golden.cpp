// Rows of the op table against torch: tests/golden/ops.txt, which tests/interop/ops.py wrote from the same operands.
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <sstream>

#include "op_evaluate.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

struct Golden {
  std::vector<std::vector<double>> outputs, gradients;
};

/// By "function variant".
std::map<std::string, Golden> read_golden() {
  std::ifstream file(CINTA_SOURCE_DIR "/tests/golden/ops.txt");
  REQUIRE(file);
  std::map<std::string, Golden> out;
  Golden* open = nullptr;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string head;
    words >> head;
    if (head == "row") {
      open = &out[line.substr(4)];
      continue;
    }
    REQUIRE(open);
    auto& list = (head == "output" ? open->outputs : open->gradients).emplace_back();
    for (double value; words >> value;) list.push_back(value);
  }
  return out;
}

void replace(std::vector<Result>& results, const std::vector<std::vector<double>>& golden) {
  REQUIRE(results.size() == golden.size());
  for (size_t i = 0; i < results.size(); ++i) {
    REQUIRE(results[i].values.size() == golden[i].size());
    results[i].values = golden[i];
  }
}

}  // namespace

TEST_CASE("ops compute what torch computes", "[ops]") {
  std::map<std::string, Golden> golden = read_golden();
  CHECK(golden.size() > 40);
  for (const OpCase& row : all_op_cases()) {
    const auto found = golden.find(row.name + " " + row.variant);
    if (found == golden.end()) continue;
    INFO(found->first);
    Expectation expected = expect(row, {});  // tolerances of f32, for both devices
    replace(expected.want.outputs, found->second.outputs);
    replace(expected.want.gradients, found->second.gradients);
    CHECK(difference(expected, evaluate(row, row.run, {})) == "");
    CHECK(difference(expected, evaluate(row, row.run, {.device = reference, .dtype = Dtype::f64})) == "");
    golden.erase(found);
  }
  for (const auto& [name, values] : golden) FAIL_CHECK(name << " is no row of the op table");
}
