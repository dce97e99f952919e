// An observer that books every op to the layer it runs in.
#include "cinta/train/step_cost.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "cinta/autograd/mode.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/allocator.h"
#include "cinta/core/context.h"
#include "cinta/train/readable.h"

namespace cinta::train {
namespace {

using Inputs = std::span<const Tensor* const>;

/// Multiplications and additions of an op that is a product of matrices, else 0.
double product_flops(std::string_view op, Inputs inputs, const Tensor& out) {
  const auto numel = [](const Tensor& tensor) { return static_cast<double>(tensor.numel()); };
  const Tensor& first = *inputs[0];
  if (op == "linear") return 2 * numel(out) * static_cast<double>(first.size(-1));
  if (op == "matmul") return 2 * numel(out) * static_cast<double>(first.size(-1) * first.size(-2) / out.size(-2));
  if (op == "attention") return 4 * numel(first) * static_cast<double>(inputs[1]->size(-2));
  if (op == "self_attention" && inputs.size() > 1) return 4 * numel(first) * static_cast<double>(inputs[1]->size(1));
  if (op == "self_attention") return 4 * numel(first) / 3 * static_cast<double>(first.size(1));
  return 0;
}

class Booking : public autograd::Observer {
 public:
  explicit Booking(const models::Module& model) {
    for (const optim::Parameter& one : model.parameters()) {
      parameters_.insert(one.tensor.storage().get());
      if (one.tensor.slot) slots_.insert(one.tensor.slot.get());
    }
  }
  std::vector<LayerCost> take() { return std::move(layers_); }

  void before(const char*, Inputs inputs) override {
    inputs_.assign(inputs.begin(), inputs.end());
    for (const Tensor* input : inputs)
      if (*input && input->slot && slots_.contains(input->slot.get()))
        if (seen_.insert(input->slot.get()).second) layer().parameters += input->numel();
  }
  void forward(const char* name, Where, std::span<const Tensor> outputs) override {
    flops_ = inputs_.empty() || outputs.empty() ? 0 : product_flops(name, inputs_, outputs[0]);
    LayerCost& now = walking_ ? layers_[*walking_] : layer();
    (walking_ ? now.backward_flops : now.forward_flops) += flops_;  // an op in backward is run again, or is its rule
  }
  void saved(const autograd::Node&, const Tensor& tensor, const autograd::Hole* hole) override {
    const Storage* storage = tensor.storage().get();
    const auto shadows = [storage](const Storage* one) { return one->shadow.storage.get() == storage; };
    const bool parameter = parameters_.contains(storage) || slots_.contains(tensor.slot.get()) ||
                           std::ranges::any_of(parameters_, shadows);
    if (!hole && !parameter && kept_.insert(storage).second) layer().kept_bytes += storage->bytes();
  }
  void recorded(const autograd::Node& node) override {
    const bool factors = node.inputs.size() > 1 && std::string_view(node.name()).find("attention") == std::string::npos;
    const double times = factors ? (node.inputs[0] != nullptr) + (node.inputs[1] != nullptr) : 2;
    nodes_[node.number] = {index(), times * flops_};
  }
  void before_backward(const autograd::Node& node, std::span<const Tensor>) override {
    walking_ = nodes_[node.number].layer;
  }
  void backward(const autograd::Node& node, std::span<const Tensor>) override {
    layers_[*walking_].backward_flops += nodes_[node.number].flops;
    walking_.reset();
  }

 private:
  size_t index() {
    const std::string name = layer_of(NameScope::path());
    const auto found = std::ranges::find(layers_, name, &LayerCost::name);
    if (found != layers_.end()) return static_cast<size_t>(found - layers_.begin());
    layers_.push_back({.name = name});
    return layers_.size() - 1;
  }
  LayerCost& layer() { return layers_[index()]; }

  struct Recorded {
    size_t layer = 0;
    double flops = 0;  ///< of its backward
  };
  std::set<const Storage*> parameters_, kept_;
  std::set<const autograd::Slot*> slots_, seen_;  ///< of parameters, which autocast shows in other storage
  std::vector<const Tensor*> inputs_;
  std::vector<LayerCost> layers_;
  std::map<uint64_t, Recorded> nodes_;
  std::optional<size_t> walking_;  ///< the layer whose node's backward runs
  double flops_ = 0;
};

}  // namespace

StepCost step_cost(const models::Module& model, const Callback<Tensor()>& loss, optim::Optimizer& optimizer) {
  const Device device = model.named_tensors().front().tensor.device();
  std::vector<LayerCost> layers;
  for (const bool warm : {false, true}) {  // the first step grows what the kernels work in
    if (warm) context().pool(device)->reset_peak();
    Booking booking(model);
    optimizer.zero_gradients();
    {
      autograd::Scoped watching(&autograd::Mode::observer, static_cast<autograd::Observer*>(&booking));
      autograd::backward(loss());
    }
    optimizer.step({.max_norm = 1.0});
    layers = booking.take();
  }
  return {std::move(layers), memory_statistics(device)};
}

}  // namespace cinta::train
