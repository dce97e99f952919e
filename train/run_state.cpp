// Numbers by name, sorted, so that a file of them does not depend on the order in which they were first kept.
#include "cinta/train/run_state.h"

#include <algorithm>
#include <cmath>

namespace cinta::train {

double RunState::number(std::string_view name) const {
  const auto found = std::ranges::lower_bound(numbers, name, {}, &NamedNumber::name);
  return found != numbers.end() && found->name == name ? found->value : NAN;
}

void RunState::keep(std::string_view name, double value) {
  const auto place = std::ranges::lower_bound(numbers, name, {}, &NamedNumber::name);
  if (place != numbers.end() && place->name == name)
    place->value = value;
  else
    numbers.insert(place, {std::string(name), value});
}

}  // namespace cinta::train
