// What the tests of narrow products share.
#pragma once
#include <vector>

#include "cinta/autograd/autocast.h"
#include "cinta/autograd/narrow_products.h"
#include "cinta/core/random.h"

namespace cinta::testing {

using Numbers = std::vector<float>;

inline Numbers spread(int64_t count, uint32_t stream, float width) {
  Numbers out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(width * (2 * to_uniform(random_word(5, stream, 0, static_cast<uint64_t>(i))) - 1));
  return out;
}

inline autograd::Autocast types_of(std::string_view recipe) {
  return {.products = std::make_shared<autograd::NarrowProducts>(autograd::parse_product_recipe(recipe))};
}

inline Tensor leaf(const Numbers& values, const Shape& shape) {
  Tensor out = from_values(values, shape);
  return autograd::require_gradient(out);
}

}  // namespace cinta::testing
