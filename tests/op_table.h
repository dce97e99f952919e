// The table of op cases. One row is one call of a public function of ops/; a file of tests/ holds the rows of a subject
// and calls check_ops(), which holds every row to everything that is promised of an op: values, layouts, storage types,
// gradients, gradients of gradients, empty and single batches, shapes without memory, its composed form.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "cinta/core/tensor.h"

namespace cinta::testing {

using Operands = std::vector<Tensor>;
using Function = std::function<std::vector<Tensor>(const Operands&)>;

/// A size that is 3, then 1, then 0.
inline constexpr int64_t batch = -1;

/// How one operand is made.
struct Input {
  Shape shape;
  double low, high;
  Dtype dtype = Dtype::f32;  ///< of whole numbers
  bool whole = false;        ///< whole numbers in [low, high); otherwise of the floating type under test, and tracked
  bool plain = false;        ///< always dense: an operand whose layout is fixed
};
inline Input real(const Shape& shape, double low = -2, double high = 2) { return {shape, low, high}; }
inline Input whole(const Shape& shape, int64_t low, int64_t high, Dtype dtype = Dtype::i64) {
  return {shape, static_cast<double>(low), static_cast<double>(high), dtype, true};
}
/// The state that dropout reads: seed, step and first row.
inline Input random_state() { return {{3}, 1, 100, Dtype::i64, true, true}; }

/// One row of the table. `run` takes the operands and gives a tensor or a vector of tensors.
class OpCase {
 public:
  template <class F>
  OpCase(std::string name, std::vector<Input> inputs, F run, std::string variant = "")
      : name(std::move(name)), variant(std::move(variant)), inputs(std::move(inputs)), run(listed(run)) {}

  /// The same function written with other ops: values and gradients must agree.
  template <class F>
  OpCase composed(F function) const {
    OpCase out = *this;
    out.oracle = listed(function);
    return out;
  }
  /// An op that the tape does not follow.
  OpCase untracked() const {
    OpCase out = *this;
    out.differentiable = false;
    return out;
  }

  std::string name, variant;
  std::vector<Input> inputs;
  Function run, oracle;
  bool differentiable = true;

 private:
  template <class F>
  static Function listed(F run) {
    return [run](const Operands& x) {
      if constexpr (requires { std::vector<Tensor>{run(x)}; })
        return std::vector<Tensor>{run(x)};
      else
        return run(x);
    };
  }
};

/// Registers rows; check_ops() runs those of the calling file.
struct OpTable {
  explicit OpTable(const std::vector<OpCase>& rows, Where where = Where::current());
};
void check_ops(Where where = Where::current());
/// The same for one row that stands in no table: an op that the library does not have.
void check_op(const OpCase& row);
/// Every registered row.
std::vector<OpCase> all_op_cases();

}  // namespace cinta::testing
