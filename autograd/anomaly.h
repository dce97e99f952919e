// The hunt for NaN: while an AnomalyScope is alive, the first op whose output or gradient is not finite throws.
#pragma once
#include "cinta/autograd/mode.h"

namespace cinta::autograd {

/// Reads every result back to the host: slow, for finding faults only. Throws ValueError naming the op and its place.
class AnomalyScope {
 public:
  AnomalyScope();
  ~AnomalyScope();
  AnomalyScope(const AnomalyScope&) = delete;

 private:
  std::unique_ptr<Observer> observer_;
  Observer* before_;
};

}  // namespace cinta::autograd
