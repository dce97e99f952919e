// What the norms share: what they require of their operands, and how they are composed of other ops.
#pragma once
#include <initializer_list>
#include <utility>

#include "cinta/ops/check.h"

namespace cinta {

inline void check_normalized(const KernelRow& row, const char* op, const Tensor& x, double eps, Where where) {
  check_floating(row, op, "x", x, where);
  require<ShapeError>(x.rank() >= 1 && x.size(-1) > 0, op, where, "x[..,N] with N > 0, given ", x);
  require(eps >= 0, op, where, "eps is not negative, given ", eps);
}

/// Parameters over the last dimension of x, each absent or [N]. No two are one tensor on the tape: their gradients are
/// written by one kernel, into different memory.
inline void check_parameters(const char* op, const Tensor& x,
                             std::initializer_list<std::pair<const char*, const Tensor*>> parameters, Where where) {
  for (auto one = parameters.begin(); one != parameters.end(); ++one) {
    const auto& [name, parameter] = *one;
    if (!*parameter) continue;
    check_like(op, name, *parameter, x, where);
    require<ShapeError>(parameter->shape() == Shape{x.size(-1)}, op, where, name, "[N] for x[..,N]: x ", x, ", ", name,
                        " ", *parameter);
    for (auto other = parameters.begin(); other != one; ++other)
      require(!parameter->slot || parameter->slot != other->second->slot, op, where, other->first, " and ", name,
              " are two tensors, given one: ", *parameter);
  }
}

/// Rows whose mean, which may be absent, and 1 / deviation these are, normalised: as they were, in the type of those.
Tensor denormalized(const Tensor& normal_rows, const Tensor& mean, const Tensor& rstd);

/// layer_norm written with other ops: computed in the type of the statistics, which is the result's too. The parameters
/// may be of other types than x.
Tensor composed_layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps);

}  // namespace cinta
