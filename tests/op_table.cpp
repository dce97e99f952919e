// What every row of the op table is held to.
#include "op_table.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <regex>
#include <set>

#include "cinta/autograd/gradcheck.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/context.h"
#include "op_evaluate.h"
#include "source_tree.h"

namespace cinta::testing {
namespace {

std::map<std::string, std::vector<OpCase>>& tables() {
  static std::map<std::string, std::vector<OpCase>> tables;
  return tables;
}

bool has_batch(const OpCase& row) {
  for (const Input& input : row.inputs)
    for (int64_t size : input.shape)
      if (size == batch) return true;
  return false;
}

void check(const OpCase& row, const Setting& setting, const char* what) {
  INFO(what << " " << name_of(setting.dtype) << " batch " << setting.batch_size);
  CHECK(difference(expect(row, setting), evaluate(row, row.run, setting)) == "");
}

void check_cpu(const OpCase& row) {
  for (Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) check(row, {.dtype = dtype, .rounded_to = dtype}, "cpu");
  CHECK(difference(expect(row, {}), evaluate_accumulated(row, {})) == "");
  const Setting narrow{.dtype = Dtype::bf16, .rounded_to = Dtype::bf16};
  CHECK(difference(expect(row, narrow), evaluate_accumulated(row, narrow)) == "");
  check(row, {.layout = Layout::strided}, "strided");
  check(row, {.layout = Layout::repeated, .repeated_values = true}, "repeated");
  if (!has_batch(row)) return;
  check(row, {.batch_size = 1}, "cpu");
  check(row, {.batch_size = 0}, "cpu");
}

/// Shapes and types without memory are those with memory.
void check_meta(const OpCase& row) {
  const Evaluation want = evaluate(row, row.run, {});
  const int64_t requests = memory_statistics(cpu).requests;
  const Evaluation got = evaluate(row, row.run, {.device = meta});
  CHECK(memory_statistics(cpu).requests == requests);
  REQUIRE(got.outputs.size() == want.outputs.size());
  for (size_t i = 0; i < want.outputs.size(); ++i) {
    CHECK(got.outputs[i].shape == want.outputs[i].shape);
    CHECK(got.outputs[i].dtype == want.outputs[i].dtype);
  }
  REQUIRE(got.gradients.size() == want.gradients.size());
  for (size_t i = 0; i < want.gradients.size(); ++i) CHECK(got.gradients[i].shape == want.gradients[i].shape);
}

void check_composed(const OpCase& row) {
  if (!row.oracle) return;
  const Setting f64{.device = reference, .dtype = Dtype::f64, .rounded_to = Dtype::f64};
  CHECK(difference(expect(row, f64), evaluate(row, row.oracle, f64)) == "");
}

/// Central differences of width 2e-5 are off by f'''/6 * 1e-10 (third derivatives of some hundreds) and by the rounding
/// of f, 1e-16 / 1e-5 of its size: 1e-7 leaves room for both and none for a wrong formula.
constexpr double difference_limit = 1e-7;

void check_gradients(const OpCase& row) {
  if (!row.differentiable) return;
  const Operands in = make_operands(row, {.device = reference, .dtype = Dtype::f64, .rounded_to = Dtype::f64});
  const size_t outputs = row.run(in).size();
  for (size_t i = 0; i < outputs; ++i) {
    INFO("output " << i);
    auto one = [&](const Operands& x) { return row.run(x)[i]; };
    CHECK(autograd::gradcheck(one, in) < difference_limit);
    CHECK(autograd::second_gradcheck(one, in) < difference_limit);
  }
}

/// The public functions of ops/*.h: those that take a place, and operators.
std::set<std::string> public_functions() {
  const std::regex declaration(R"((?:Tensor|std::vector<Tensor>|void) (\w+)\([^;]*?Where::current\(\))");
  const std::regex operator_declaration(R"(Tensor (operator[^(]+)\()");
  std::set<std::string> out;
  for (const auto& [path, file] : source_tree()) {
    if (folder_of(path) != "ops" || !is_header(path)) continue;
    std::string text;
    for (const std::string& line : file.lines) text += line.substr(0, line.find("//")) + " ";
    for (const std::regex& pattern : {declaration, operator_declaration})
      for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) out.insert((*i)[1]);
  }
  return out;
}

}  // namespace

OpTable::OpTable(const std::vector<OpCase>& rows, Where where) {
  auto& table = tables()[where.file_name()];
  table.insert(table.end(), rows.begin(), rows.end());
}

std::vector<OpCase> all_op_cases() {
  std::vector<OpCase> out;
  for (const auto& [file, rows] : tables()) out.insert(out.end(), rows.begin(), rows.end());
  return out;
}

void check_ops(Where where) {
  const auto table = tables().find(where.file_name());
  REQUIRE(table != tables().end());
  for (const OpCase& row : table->second) check_op(row);
}

void check_op(const OpCase& row) {
  INFO(row.name << " " << row.variant);
  check_cpu(row);
  check_meta(row);
  check_composed(row);
  check_gradients(row);
}

}  // namespace cinta::testing

using namespace cinta;
using namespace cinta::testing;

TEST_CASE("every public function of ops has a row in the op table, and no row is of another", "[ops]") {
  std::set<std::string> tested;
  for (const OpCase& row : all_op_cases()) tested.insert(row.name);
  const std::set<std::string> declared = public_functions();
  CHECK(declared.size() > 70);
  for (const std::string& name : declared) {
    INFO(name << " has no row in tests/ops_*.cpp");
    CHECK(tested.contains(name));
  }
  for (const std::string& name : tested) {
    INFO(name << " is no function of ops/*.h");
    CHECK(declared.contains(name));
  }
}
