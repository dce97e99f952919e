// Rounding is straight through: what it does to a number is no part of the gradient.
#include "cinta/ops/round.h"

#include <algorithm>

#include "cinta/autograd/copy.h"
#include "cinta/backends/kernels/round.h"
#include "cinta/core/format_facts.h"
#include "cinta/ops/check.h"

namespace cinta {
namespace {

constexpr const char* name = "round_to";

Overflow usual_overflow(Dtype dtype) {
  return std::ranges::find(float_formats, name_of(dtype), &FormatFacts::name)->overflow;
}

/// A copy by another row.
struct RoundTo : autograd::Copy {
  RoundOptions options;
  Tensor forward(const Tensor& x) {
    before = x.dtype();
    Tensor y = empty(x.shape(), *dtype, x.device());
    kernels::RoundTo how;
    how.overflow = options.overflow.value_or(usual_overflow(*dtype));
    if (options.rounding == Rounding::stochastic) {
      autograd::note_read(name(), options.random.state);
      how.state = options.random.state;
      how.stream = options.random.stream;
      if (options.samples && x.rank()) how.elements_per_sample = x.numel() / std::max<int64_t>(x.size(0), 1);
    }
    kernels::round_to(x.device(), y, x, how);
    return y;
  }
};

}  // namespace

Tensor round_to(const Tensor& x, Dtype dtype, const RoundOptions& options, Where where) {
  check_floating(kernels::round_to, name, "x", x, where);
  require<DtypeError>(kernels::is_narrow(dtype), name, where, "a float of 8 or 16 bits to round to, given ", dtype,
                      " for ", x);
  if (options.rounding == Rounding::stochastic)
    check_random_state(name, "stochastic rounding's state", options.random.state, x, where);
  return autograd::apply(RoundTo{{name, dtype}, options}, where, x);
}

}  // namespace cinta
