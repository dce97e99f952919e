// Every op in every floating-point type on the CPU: it computes, and right, or it is refused where it was called.
#include <catch2/catch.hpp>
#include <regex>
#include <set>
#include <typeinfo>

#include "cinta/core/context.h"
#include "cinta/ops/elementwise.h"
#include "op_evaluate.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

/// Rows that make operands of their own with ops, before the op that they are of is called; it has others.
const std::set<std::string> prepared{"attention offsets",
                                     "attention causal, offsets, dropout",
                                     "self_attention offsets",
                                     "self_attention rows, offsets, dropout",
                                     "kl_div mean",
                                     "pow whole tensor"};

/// What the call is refused with; empty when it is not. It says what it must, and comes before any memory is asked for.
std::string refusal(const OpCase& row, const Setting& setting) {
  const Operands in = make_operands(row, setting);
  const int64_t requests = memory_statistics(cpu).requests;
  try {
    row.run(in);
  } catch (const Error& error) {
    CHECK(typeid(error) == typeid(DtypeError));
    CHECK(memory_statistics(cpu).requests == requests);
    const std::string message = error.what();
    CHECK_THAT(message, Catch::Matchers::Matches("\\[" + row.name + "\\] .*on cpu the kernel .* computes in .*f32.*, " +
                                                 "given " + std::string(name_of(setting.dtype)) +
                                                 "\\[[0-9,]*\\]@cpu; .*, ops_[a-z]+\\.cpp:[0-9]+"));
    return message;
  }
  return "";
}

}  // namespace

TEST_CASE("an op on the CPU computes in f64, forward and backward, or is refused where it is called", "[ops]") {
  const Setting f64{.dtype = Dtype::f64, .rounded_to = Dtype::f64};
  std::set<std::string> refused, computed;
  for (const OpCase& row : all_op_cases()) {
    if (prepared.contains(row.name + " " + row.variant)) continue;
    INFO(row.name << " " << row.variant);
    const std::string message = refusal(row, f64);
    (message.empty() ? computed : refused).insert(row.name);
    if (message.empty()) CHECK(difference(expect(row, f64), evaluate(row, row.run, f64)) == "");
  }
  for (const char* name : {"exp", "softmax", "linear", "matmul", "layer_norm", "attention", "cross_entropy", "dropout"})
    CHECK(refused.contains(name));
  for (const char* name : {"add", "divide", "affine", "sum", "mean", "var", "max", "argmax", "where", "concat", "mse"})
    CHECK(computed.contains(name));
}

TEST_CASE("an op on the CPU computes in every narrow floating-point type", "[ops]") {
  for (const OpCase& row : all_op_cases())
    for (Dtype dtype :
         {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f8e4m3, Dtype::f8e5m2, Dtype::f8e4m3fnuz, Dtype::f8e5m2fnuz}) {
      INFO(row.name << " " << row.variant << " " << name_of(dtype));
      CHECK(refusal(row, {.dtype = dtype, .rounded_to = dtype}) == "");
    }
}
