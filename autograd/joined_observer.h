// An observer that joins those that watch already. What it overrides it hands on by calling this class's function.
#pragma once
#include <utility>

#include "cinta/autograd/mode.h"

namespace cinta::autograd {

/// Observes between attach() and detach(), and lets the observer that was there before see everything too.
class JoinedObserver : public Observer {
 public:
  JoinedObserver() = default;
  ~JoinedObserver() override { detach(); }
  void attach() { before_ = std::exchange(mode().observer, this); }
  /// In any order; those attached later go on watching.
  void detach() {
    Observer** link = &mode().observer;
    while (auto* later = *link == this ? nullptr : dynamic_cast<JoinedObserver*>(*link)) link = &later->before_;
    if (*link == this) *link = before_;
    before_ = nullptr;
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
  void before_backward(const Node& node, std::span<const Tensor> output_gradients) override {
    if (before_) before_->before_backward(node, output_gradients);
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
  Observer* before_ = nullptr;
};

}  // namespace cinta::autograd
