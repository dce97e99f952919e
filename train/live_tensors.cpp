// Births and deaths are noticed at the ends of ops, where memory is counted too.
#include "cinta/train/live_tensors.h"

#include <algorithm>
#include <tuple>

#include "cinta/core/context.h"

namespace cinta::train {

LiveTensors::LiveTensors(Device device, const std::vector<optim::Parameter>& parameters) : device_(device) {
  for (const optim::Parameter& parameter : parameters) {
    known_[parameter.tensor.storage().get()] = {parameter.name, Category::weights};
    if (const Shadow& shadow = parameter.tensor.storage()->shadow; shadow.storage)
      known_[shadow.storage.get()] = {join(shadow.dtype, " copy of ", parameter.name), Category::weights};
    if (parameter.tensor.slot) leaves_.push_back({parameter.tensor.slot, parameter.name});
  }
}

LiveTensors::Seen& LiveTensors::see(const Tensor& tensor, const std::string& made_by, const std::string& module) {
  const auto [entry, first] = alive_.try_emplace(tensor.storage(), seen_.size());
  if (first) {
    LiveTensor one{.tensor = join(tensor.dtype(), tensor.shape()),
                   .made_by = made_by,
                   .module = module,
                   .kept_by = {},
                   .category = Category::activations,
                   .bytes = tensor.storage()->bytes()};
    if (const auto known = known_.find(tensor.storage().get()); known != known_.end()) {
      std::tie(one.made_by, one.category) = known->second;
      one.module.clear();
    }
    for (const auto& [slot, name] : leaves_)
      if (slot->gradient && slot->gradient.storage() == tensor.storage()) {
        one.made_by = "gradient of " + name;
        one.category = Category::gradients;
        one.module.clear();
      }
    seen_.push_back({.tensor = std::move(one), .born = ends_});
  }
  return seen_[entry->second];
}

void LiveTensors::count(const std::string& op, const std::string& module) {
  std::erase_if(alive_, [&](const auto& entry) {
    if (!entry.first.expired()) return false;
    seen_[entry.second].died = ends_;
    return true;
  });
  const MemoryStatistics statistics = memory_statistics(device_);
  if (statistics.live_total > peak_.total) {
    peak_ = {.op = op, .module = module, .live = statistics.live, .total = statistics.live_total};
    peak_end_ = ends_;
  }
  ++ends_;
}

void LiveTensors::before(const char* name, std::span<const Tensor* const> inputs) {
  for (const Tensor* input : inputs)
    if (*input) see(*input, join("before ", name), "");
}

void LiveTensors::forward(const char* name, Where, std::span<const Tensor> outputs) {
  for (const Tensor& output : outputs) {
    if (!output) continue;
    see_with_shadow(output, Shadow::Of::result, name, NameScope::path());
  }
  count(inside_.empty() ? name : join(name, " inside ", inside_.back()), NameScope::path());
}

void LiveTensors::see_with_shadow(const Tensor& tensor, Shadow::Of of, const std::string& name,
                                  const std::string& module) {
  see(tensor, name, module);
  if (const Shadow& shadow = tensor.storage()->shadow; shadow.storage && shadow.of == of)
    see(Tensor(shadow.storage, tensor.shape(), tensor.strides(), 0, shadow.dtype), name, module);
}

void LiveTensors::saved(const autograd::Node& node, const Tensor& tensor, const autograd::Hole* hole) {
  if (!tensor || hole) return;
  LiveTensor& kept = see(tensor, node.name(), NameScope::path()).tensor;
  if (kept.kept_by.empty()) kept.kept_by = node.name();
}

void LiveTensors::recorded(const autograd::Node& node) { modules_[node.number] = NameScope::path(); }

void LiveTensors::before_backward(const autograd::Node& node, std::span<const Tensor>) {
  inside_.push_back(join(node.name(), " backward"));
}

void LiveTensors::backward(const autograd::Node& node, std::span<const Tensor> gradients) {
  const std::string name = inside_.empty() ? node.name() : inside_.back();
  if (!inside_.empty()) inside_.pop_back();
  const auto found = modules_.find(node.number);
  const std::string module = found == modules_.end() ? "" : found->second;
  for (const Tensor& gradient : gradients)
    if (gradient) see_with_shadow(gradient, Shadow::Of::gradient, name, module);
  count(name, module);
}

MemoryPeak LiveTensors::peak() const {
  MemoryPeak out = peak_;
  for (const Seen& one : seen_)
    if (one.born <= peak_end_ && (one.died < 0 || one.died > peak_end_)) out.tensors.push_back(one.tensor);
  std::ranges::stable_sort(out.tensors, std::greater(), &LiveTensor::bytes);
  return out;
}

}  // namespace cinta::train
