// The trace stands in front of the other watchers, so that their time is nobody's.
#include "cinta/train/step_profile.h"

#include <algorithm>
#include <utility>

#include "cinta/autograd/joined_observer.h"
#include "cinta/train/tape_recorder.h"

namespace cinta::train {

/// Hands everything on to the tape's recorder and the tensors' follower.
class StepProfiler::Watchers : public autograd::JoinedObserver {
 public:
  explicit Watchers(const std::vector<optim::Parameter>& parameters)
      : recorder_(parameters), tensors_(parameters.empty() ? cpu : parameters.front().tensor.device(), parameters) {
    attach();
  }
  std::vector<TapeNode> take_tape() { return in_forward_ ? recorder_.take() : std::move(tape_); }
  MemoryPeak peak() const { return tensors_.peak(); }

  void before(const char* name, std::span<const Tensor* const> inputs) override {
    JoinedObserver::before(name, inputs);
    each([&](Observer& one) { one.before(name, inputs); });
  }
  void forward(const char* name, Where where, std::span<const Tensor> outputs) override {
    JoinedObserver::forward(name, where, outputs);
    each([&](Observer& one) { one.forward(name, where, outputs); });
  }
  void saved(const autograd::Node& node, const Tensor& tensor, const autograd::Hole* hole) override {
    JoinedObserver::saved(node, tensor, hole);
    each([&](Observer& one) { one.saved(node, tensor, hole); });
  }
  void recorded(const autograd::Node& node) override {
    JoinedObserver::recorded(node);
    each([&](Observer& one) { one.recorded(node); });
  }
  void before_backward(const autograd::Node& node, std::span<const Tensor> gradients) override {
    JoinedObserver::before_backward(node, gradients);
    if (std::exchange(in_forward_, false)) tape_ = recorder_.take();
    each([&](Observer& one) { one.before_backward(node, gradients); });
  }
  void backward(const autograd::Node& node, std::span<const Tensor> gradients) override {
    JoinedObserver::backward(node, gradients);
    each([&](Observer& one) { one.backward(node, gradients); });
  }
  void enter(const char* phase) override {
    JoinedObserver::enter(phase);
    each([&](Observer& one) { one.enter(phase); });
  }
  void leave(const char* phase) override {
    JoinedObserver::leave(phase);
    each([&](Observer& one) { one.leave(phase); });
  }

 private:
  template <class Event>
  void each(Event event) {
    if (in_forward_) event(recorder_);
    event(tensors_);
  }

  TapeRecorder recorder_;
  LiveTensors tensors_;
  std::vector<TapeNode> tape_;
  bool in_forward_ = true;  ///< of the first micro-batch
};

StepProfiler::StepProfiler(const models::Module& model, int64_t step)
    : step_(step), watchers_(std::make_shared<Watchers>(model.parameters())) {
  trace_.start(join("step ", step));
}

StepProfiler::~StepProfiler() { trace_.stop(); }

StepProfile StepProfiler::finish() {
  trace_.stop();
  watchers_->detach();
  StepProfile out{step_, trace_.slices(), trace_.memory(), watchers_->take_tape(), watchers_->peak()};
  uint64_t before = UINT64_MAX;  // nodes are counted from the first that was recorded
  for (const TraceSlice& slice : out.slices)
    if (slice.node) before = std::min(before, slice.node - 1);
  for (TraceSlice& slice : out.slices)
    if (slice.node) slice.node -= before;
  return out;
}

}  // namespace cinta::train
