// An observer that joins those that watch already. What it overrides it hands on by calling this class's function.
#pragma once
#include <utility>

#include "cinta/autograd/mode.h"

namespace cinta::autograd {

/// Observes from its construction on, and lets the observer that was there before see everything too.
class JoinedObserver : public Observer {
 public:
  JoinedObserver() : before_(std::exchange(mode().observer, this)) {}
  ~JoinedObserver() override {
    if (mode().observer == this) mode().observer = before_;
  }
  JoinedObserver(const JoinedObserver&) = delete;
  JoinedObserver& operator=(const JoinedObserver&) = delete;
  void before(const char* name, std::span<const Tensor* const> inputs) override {
    if (before_) before_->before(name, inputs);
  }
  void forward(const char* name, Where where, std::span<const Tensor> outputs) override {
    if (before_) before_->forward(name, where, outputs);
  }
  void saved(const Node& node, const Tensor& tensor, const Hole* hole) override {
    if (before_) before_->saved(node, tensor, hole);
  }
  void recorded(const Node& node) override {
    if (before_) before_->recorded(node);
  }
  void before_backward(const Node& node) override {
    if (before_) before_->before_backward(node);
  }
  void backward(const Node& node, std::span<const Tensor> input_gradients) override {
    if (before_) before_->backward(node, input_gradients);
  }
  void enter(const char* phase) override {
    if (before_) before_->enter(phase);
  }
  void leave(const char* phase) override {
    if (before_) before_->leave(phase);
  }

 private:
  Observer* before_;
};

}  // namespace cinta::autograd
