// Dropout settings as operands of a trial.
#pragma once
#include "cinta/backends/kernels/random.h"
#include "contract.h"

namespace cinta::contract {

/// A dropout site whose state is an operand of the trial; none at all when p is 0.
struct DropoutSite {
  DropoutSite(Trial& trial, float p) : p(p) {
    if (p > 0) state = trial.input({3}, Dtype::i64, {123456789012345, 7, 11});
  }
  kernels::Dropout operator()(const Call& call) const { return {call(state), 0xabcdef12u, p}; }
  float p;
  Handle state;
};

}  // namespace cinta::contract
