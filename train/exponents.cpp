// Counting exponents at the door of the ops and in backward.
#include "cinta/train/exponents.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "cinta/autograd/joined_observer.h"
#include "cinta/data/atomic_file.h"
#include "cinta/train/loop.h"

namespace cinta::train {

void Exponents::add(const Tensor& tensor) {
  for (float value : to_vector<float>(tensor)) {
    if (value == 0)
      ++zeros;
    else if (!std::isfinite(value))
      ++not_finite;
    else
      ++counts[static_cast<size_t>(std::clamp(std::ilogb(value), least, most) - least)];
  }
}

int64_t Exponents::total() const { return std::accumulate(counts.begin(), counts.end(), zeros); }

double Exponents::vanishing(int smallest_exponent) const {
  int64_t lost = 0;  // to nearest, what is at least half of the smallest number becomes that
  for (int e = least; e < std::min(most + 1, smallest_exponent - 1); ++e)
    lost += counts[static_cast<size_t>(e - least)];
  return total() ? static_cast<double>(lost) / static_cast<double>(total()) : 0;
}

double Exponents::saturating(int top_exponent) const {
  int64_t lost = 0;
  for (int e = std::max(least, top_exponent + 1); e <= most; ++e) lost += counts[static_cast<size_t>(e - least)];
  return total() ? static_cast<double>(lost) / static_cast<double>(total()) : 0;
}

class ExponentWatch::Observer final : public autograd::JoinedObserver {
 public:
  explicit Observer(const models::Module& model) : parameters_(model.parameters()) { attach(); }

  void forward(const char* name, Where where, std::span<const Tensor> outputs) override {
    JoinedObserver::forward(name, where, outputs);
    for (const Tensor& output : outputs)
      if (is_floating(output.dtype()) && output.numel() > 1 && !walking_)
        of(Exponents::forward, NameScope::path()).add(output);
  }
  void recorded(const autograd::Node& node) override {
    JoinedObserver::recorded(node);
    paths_[&node] = NameScope::path();
  }
  void before_backward(const autograd::Node& node) override {
    JoinedObserver::before_backward(node);
    ++walking_;
  }
  void backward(const autograd::Node& node, std::span<const Tensor> gradients) override {
    JoinedObserver::backward(node, gradients);
    --walking_;
    for (size_t i = 0; i < gradients.size() && i < node.inputs.size(); ++i) {
      const autograd::Slot* slot = node.inputs[i].get();
      if (!gradients[i] || !slot || slot->leaf || gradients[i].numel() <= 1) continue;
      const auto path = paths_.find(slot->producer.get());
      if (path != paths_.end()) of(Exponents::gradient, path->second).add(gradients[i]);
    }
  }

  std::vector<Exponents> take() {
    for (const optim::Parameter& one : parameters_) {
      if (one.tensor.rank() < 2) continue;
      of(Exponents::weight, one.name).add(one.tensor);
      if (const Tensor gradient = autograd::gradient(one.tensor))
        of(Exponents::weight_gradient, one.name).add(gradient);
    }
    std::ranges::stable_sort(found_, {}, &Exponents::kind);
    return std::move(found_);
  }

 private:
  Exponents& of(Exponents::Kind kind, std::string name) {
    if (name.empty()) name = "outside of modules";
    for (Exponents& one : found_)
      if (one.kind == kind && one.name == name) return one;
    found_.push_back({.kind = kind, .name = name});
    return found_.back();
  }

  std::vector<optim::Parameter> parameters_;
  std::map<const autograd::Node*, std::string> paths_;
  std::vector<Exponents> found_;
  int walking_ = 0;  ///< nodes whose backward runs: ops inside are rules, or recomputed
};

ExponentWatch::ExponentWatch(const models::Module& model) : observer_(std::make_shared<Observer>(model)) {}
ExponentWatch::~ExponentWatch() = default;
std::vector<Exponents> ExponentWatch::take() { return observer_->take(); }

void ExponentReport::on_step_begin(const Moment& now) {
  const bool first = steps_.empty(), last = now.state.step + 1 == now.options.max_steps;
  if (!now.options.output_dir.empty() && (first || last)) watch_ = std::make_shared<ExponentWatch>(now.task.model());
}

void ExponentReport::on_pre_optimizer_step(const Moment& now) {
  if (!watch_) return;
  steps_.push_back({now.state.step + 1, watch_->take()});
  watch_.reset();
  for (const auto& [name, text] : {std::pair{"/exponents.svg", svg_of(steps_)}, {"/exponents.json", json_of(steps_)}}) {
    data::AtomicFile file(now.options.output_dir + name);
    file.write_text(text);
    file.commit();
  }
}

}  // namespace cinta::train
