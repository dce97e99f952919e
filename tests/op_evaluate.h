// Running one row of the op table on a device, and how far from the reference it may be.
#pragma once
#include "op_table.h"

namespace cinta::testing {

enum class Layout {
  dense,
  strided,   ///< the dimensions in the other order, every second element, starting at the fourth
  repeated,  ///< stride 0 in the first dimension; wants repeated_values
};

/// What a row is evaluated on.
struct Setting {
  Device device = cpu;
  Dtype dtype = Dtype::f32;  ///< of floating operands
  Layout layout = Layout::dense;
  int64_t batch_size = 3;
  Dtype rounded_to = Dtype::f32;  ///< the type that the operands' values are exact in
  bool repeated_values = false;   ///< every slice along the first dimension has the same values
};

struct Result {
  Shape shape;
  Dtype dtype;
  std::vector<double> values;
};
/// Outputs, then the gradient of a fixed weighting of the floating outputs for each floating operand.
struct Evaluation {
  std::vector<Result> outputs, gradients;
};

/// The operands of a row, the same for equal settings up to device, type and layout.
Operands make_operands(const OpCase& row, const Setting& setting);
Evaluation evaluate(const OpCase& row, const Function& function, const Setting& setting);
/// The same gradients, found as half of what two backward walks leave in the leaves: the second adds to the first.
Evaluation evaluate_accumulated(const OpCase& row, const Setting& setting);
/// What is right, from the reference in f64, and by how much each element may differ from it.
struct Expectation {
  Evaluation want;
  std::vector<std::vector<double>> output_tolerance, gradient_tolerance;
};
/// A result computed in `dtype` may differ by
///   4 u(dtype) (|want| + s) + u(f32) (n + 16) (|want| + s)
/// where s is |change of the result| / e when every operand and the result of every op on the way is multiplied by
/// 1 + e or 1 - e at random (the largest of several draws; 4 covers what a draw may miss), u a type's rounding unit (of
/// f64 in place of f32 where dtype is f64) and n the longest sum, at most the number of elements of the row's operands.
Expectation expect(const OpCase& row, const Setting& setting);
/// Empty when `got` is as expected; otherwise the first difference.
std::string difference(const Expectation& expected, const Evaluation& got);

}  // namespace cinta::testing
