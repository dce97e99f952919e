// The hunt for NaN: while an AnomalyScope is alive, the first op whose output or gradient is not finite throws.
#pragma once
#include "cinta/autograd/mode.h"

namespace cinta::autograd {

/// An observer that was there before goes on watching. Reads every result back to the host: slow, for finding faults
/// only. Throws ValueError naming the op and its place.
class AnomalyScope {
 public:
  AnomalyScope();
  AnomalyScope(const AnomalyScope&) = delete;
  AnomalyScope& operator=(const AnomalyScope&) = delete;

 private:
  std::shared_ptr<Observer> observer_;
};

}  // namespace cinta::autograd
