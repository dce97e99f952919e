// Counting exponents at the door of the ops and in backward.
#include "cinta/train/exponents.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "cinta/autograd/joined_observer.h"
#include "cinta/core/format_facts.h"

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

const char* name_of(Exponents::Kind kind) {
  constexpr const char* names[] = {"values", "gradients", "weights", "gradients of weights"};
  return names[kind];
}

std::vector<ExponentRange> exponent_ranges() {
  std::vector<ExponentRange> out;
  for (const FormatFacts& one : float_formats)
    if (one.name == "f16" || one.name == "f8e4m3" || one.name == "f8e5m2")
      out.push_back({std::string(one.name), one.least_exponent - one.mantissa_bits, one.top_exponent});
  return out;
}

class ExponentWatch::Observer final : public autograd::JoinedObserver {
 public:
  explicit Observer(const models::Module& model) : parameters_(model.parameters()) { attach(); }

  void forward(const char* op, Where where, std::span<const Tensor> outputs) override {
    JoinedObserver::forward(op, where, outputs);
    if (walking_ > 0) return;
    const std::string place = place_of(op);
    const int64_t time = ++times_[place];
    for (size_t i = 0; i < outputs.size(); ++i)
      if (counts(outputs[i])) row(Exponents::forward, name_of_output(place, time, i)).add(outputs[i]);
  }
  void recorded(const autograd::Node& node) override {
    JoinedObserver::recorded(node);
    if (walking_ > 0) return;
    const std::string place = place_of(node.name());
    recorded_[node.number] = {place, times_[place]};
  }
  void before_backward(const autograd::Node& node, std::span<const Tensor> gradients) override {
    JoinedObserver::before_backward(node, gradients);
    ++walking_;
    const auto made = recorded_.find(node.number);
    for (size_t i = 0; i < gradients.size() && made != recorded_.end(); ++i)
      if (gradients[i] && counts(gradients[i]))
        row(Exponents::gradient, name_of_output(made->second.first, made->second.second, i)).add(gradients[i]);
  }
  void backward(const autograd::Node& node, std::span<const Tensor> gradients) override {
    JoinedObserver::backward(node, gradients);
    --walking_;
  }
  void leave(const char* phase) override {
    JoinedObserver::leave(phase);
    if (std::string_view(phase) == "backward" && walking_ == 0) times_.clear();
  }

  std::vector<Exponents> take() {
    for (const optim::Parameter& one : parameters_) {
      row(Exponents::weight, one.name).add(one.tensor);
      if (const Tensor gradient = autograd::gradient(one.tensor))
        row(Exponents::weight_gradient, one.name).add(gradient);
    }
    std::vector<Exponents> out;
    for (auto& [key, found] : std::exchange(found_, {})) out.push_back(std::move(found));
    return out;
  }

 private:
  static bool counts(const Tensor& tensor) { return is_floating(tensor.dtype()) && tensor.numel() > 1; }
  static std::string place_of(const char* op) {
    const std::string& path = NameScope::path();
    return (path.empty() ? "outside of modules" : path) + "/" + op;
  }
  static std::string name_of_output(std::string place, int64_t time, size_t index) {
    if (time > 1) place += " " + std::to_string(time);
    return index == 0 ? place : place + ", output " + std::to_string(index + 1);
  }
  Exponents& row(Exponents::Kind kind, const std::string& name) {
    const size_t order = order_.try_emplace(name, order_.size()).first->second;
    Exponents& out = found_[{kind, order}];
    out.kind = kind;
    out.name = name;
    return out;
  }

  std::vector<optim::Parameter> parameters_;
  std::map<std::string, int64_t> times_;                          ///< that an op has run at a place in this forward
  std::map<uint64_t, std::pair<std::string, int64_t>> recorded_;  ///< where a node ran, the running number there
  std::map<std::string, size_t> order_;                           ///< of first appearance
  std::map<std::pair<Exponents::Kind, size_t>, Exponents> found_;
  int walking_ = 0;  ///< nodes whose backward runs: ops inside are rules, or run again
};

ExponentWatch::ExponentWatch(const models::Module& model) : observer_(std::make_shared<Observer>(model)) {}
ExponentWatch::~ExponentWatch() = default;
std::vector<Exponents> ExponentWatch::take() { return observer_->take(); }

}  // namespace cinta::train
