// Rounding to a narrow format, element by element, by the formats' own functions.
#include "cinta/backends/kernels/round.h"

#include "cinta/backends/reference/dropout.h"

namespace cinta::oracle {
namespace {

/// `value` in format T, by the element's word where there is a state.
template <class T>
T encoded(double value, const kernels::RoundTo& how, int64_t element) {
  const float odd = round_to_odd(value);
  if (!how.state) return T::from_bits(T::encode(odd, how.overflow));
  const uint32_t random = word(how.state, how.stream, how.elements_per_sample, element);
  return T::from_bits(T::encode_stochastic(odd, random, how.overflow));
}

void round_elements(View y, View x, kernels::RoundTo how) {
  kernels::visit_narrow(y.dtype, [&]<class T>() {
    for (int64_t n = 0; n < x.numel(); ++n) nth(y, n).set(encoded<T>(nth(x, n), how, n));
  });
}

const Install round_to{kernels::round_to, reference, round_elements};

}  // namespace
}  // namespace cinta::oracle
