// Dropout settings as operands of a trial.
#pragma once
#include "cinta/backends/kernels/random.h"
#include "contract.h"

namespace cinta::contract {

/// A dropout site whose state is an operand of the trial; none at all when p is 0.
struct DropoutSite {
  /// `rows`: of what is masked where it is some rows of a whole, which then have numbers in no order; else 0.
  DropoutSite(Trial& trial, float p, int64_t rows = 0) : p(p) {
    Values numbers;
    for (int64_t r = 0; r < rows; ++r) numbers.push_back(static_cast<double>(r * 7 % 31 + r % 2));
    if (p > 0 && rows > 0) this->rows = trial.input({rows}, Dtype::i64, numbers);
    if (p > 0) state = trial.input({3}, Dtype::i64, {123456789012345, 7, 11});
  }
  kernels::Dropout operator()(const Call& call) const { return {call(state), 0xabcdef12u, p, 3, call(rows)}; }
  float p;
  Handle state, rows;
};

}  // namespace cinta::contract
