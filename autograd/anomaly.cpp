// Looks at every forward output and every gradient.
#include "cinta/autograd/anomaly.h"

#include <cmath>

#include "cinta/autograd/joined_observer.h"

namespace cinta::autograd {
namespace {

void check(const char* op, Where where, const char* what, const Tensor& tensor) {
  if (!tensor || !is_floating(tensor.dtype()) || tensor.device().backend == meta.backend) return;
  int64_t bad = 0, first = -1;
  const std::vector<double> values = to_vector<double>(tensor);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    if (first < 0) first = static_cast<int64_t>(i);
    ++bad;
  }
  require(bad == 0, op, where, what, " has ", bad, " of ", values.size(),
          " values that are NaN or infinite, the first at ", first, ": ", tensor);
}

struct Anomaly : JoinedObserver {
  Anomaly() { attach(); }
  void forward(const char* name, Where where, std::span<const Tensor> outputs) override {
    JoinedObserver::forward(name, where, outputs);
    for (const Tensor& output : outputs) check(name, where, "the output", output);
  }
  void backward(const Node& node, std::span<const Tensor> gradients) override {
    JoinedObserver::backward(node, gradients);
    for (const Tensor& gradient : gradients)
      check(node.name(), node.where, "a gradient made by the backward", gradient);
  }
};

}  // namespace

AnomalyScope::AnomalyScope() : observer_(std::make_shared<Anomaly>()) {}

}  // namespace cinta::autograd
