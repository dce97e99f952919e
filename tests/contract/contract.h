// Contracts: what every row of every backend must do, held against the reference column. A file of tests/ registers
// contracts, each with a function that builds trials; check_contracts() runs those of the calling file.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "cinta/backends/kernel.h"
#include "tolerance.h"

namespace cinta::contract {

using Values = std::vector<double>;

/// How an operand lies in memory, always inside a larger buffer whose other bytes must stay as they are.
enum class Layout {
  dense,          ///< row-major, aligned
  shifted,        ///< row-major, starting one element after an aligned address
  padded,         ///< rows contiguous, with a gap after each
  strided,        ///< every second element
  transposed,     ///< the last two dimensions in the other order (a vector: as strided)
  repeated_rows,  ///< stride 0 in the first dimension; inputs only
  repeated_last,  ///< stride 0 in the last dimension; inputs only
};
inline constexpr Layout any_layout[] = {Layout::dense, Layout::shifted, Layout::padded, Layout::strided,
                                        Layout::transposed};
inline constexpr Layout contiguous_layouts[] = {Layout::dense, Layout::shifted};
inline constexpr Dtype trained_types[] = {Dtype::f32, Dtype::f16, Dtype::bf16};

/// Names an operand of a trial; the default one is an absent operand.
struct Handle {
  int index = -1;
};

/// What a trial's function is given: a device and the views there.
struct Call {
  Device device;
  const std::vector<View>* views;
  void* status;
  View operator()(Handle handle) const { return handle.index < 0 ? View{} : (*views)[handle.index]; }
};

/// One call of a row, on every backend that has it and on the reference.
class Trial {
 public:
  explicit Trial(const KernelRow& row, std::string label = "") : row_(&row), label_(std::move(label)) {}

  /// An operand that is only read. Values are rounded to the type; a repeated dimension takes the last of its values.
  Handle input(const Shape& shape, Dtype dtype, const Values& values, Layout layout = Layout::dense);
  /// One that is only written: NaN (or -1) beforehand, and the kernel may not read it.
  Handle output(const Shape& shape, Dtype dtype, Layout layout = Layout::dense);
  /// One that is read and written.
  Handle both(const Shape& shape, Dtype dtype, const Values& values, Layout layout = Layout::dense);
  /// Elements of this output that the contract leaves open are not compared.
  void leave_open(Handle output, std::vector<bool> open);

  Accuracy accuracy;
  /// Runs `call` on the reference and on every other backend, with 1 and 2 threads, and checks: results, the same bits
  /// for both thread counts, inputs and surrounding memory untouched. `reports`: a bad index must be reported.
  void run(const std::function<void(const Call&)>& call, bool reports = false) const;
  /// What is wrong with `call` on one backend; empty when nothing is.
  std::string verdict(const std::function<void(const Call&)>& call, Device device, bool reports = false) const;
  /// Runs `call` once on the reference alone, with f64 copies of the operands.
  void run_reference(const std::function<void(const Call&)>& call) const { evaluate(call, 0, 0); }

 private:
  enum class Role { input, output, both };
  struct Operand {
    Role role;
    Shape shape, strides;
    Dtype dtype;
    int64_t first;            ///< byte of element 0
    std::vector<char> bytes;  ///< the whole buffer before the call
    Values values;            ///< the elements before the call, row-major
    std::vector<bool> open;
  };
  struct Expected {
    Values lower, upper;  ///< after rounding to the stored type
    Values exact;
  };
  struct Outcome {
    std::vector<std::vector<char>> bytes;  ///< of each operand after the call
    bool reported = false;
  };
  Handle add(Role role, const Shape& shape, Dtype dtype, const Values* values, Layout layout);
  std::vector<Values> evaluate(const std::function<void(const Call&)>& call, double perturbation, uint64_t seed) const;
  std::vector<Expected> expect(const std::function<void(const Call&)>& call) const;
  Outcome execute(const std::function<void(const Call&)>& call, Device device) const;
  std::string verdict(const std::vector<Expected>& expected, const std::function<void(const Call&)>& call,
                      Device device, bool reports) const;
  std::string compare(const Operand& operand, const Expected& expected, const std::vector<char>& bytes) const;

  const KernelRow* row_;
  std::string label_;
  std::vector<Operand> operands_;
};

/// Registers a function that tries these rows.
struct Contract {
  Contract(std::vector<const KernelRow*> rows, void (*check)(), Where where = Where::current());
};
/// Runs the contracts registered in the calling file, and checks that each has tried the rows it names.
void check_contracts(Where where = Where::current());

/// `count` numbers, uniform in [low, high), a pure function of `seed`.
Values uniform(int64_t count, double low, double high, uint64_t seed = 1);
inline Values uniform(const Shape& shape, double low, double high, uint64_t seed = 1) {
  return uniform(shape.numel(), low, high, seed);
}
/// `count` whole numbers in [low, high).
Values whole(int64_t count, int64_t low, int64_t high, uint64_t seed = 1);
/// `count` values that go through NaN, infinities, zeros of both signs, subnormal and very large numbers.
Values special(int64_t count);

}  // namespace cinta::contract
