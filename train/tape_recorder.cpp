// What an op is given, gives and keeps, read off the tensors as it runs.
#include "cinta/train/tape_recorder.h"

#include <algorithm>
#include <utility>

namespace cinta::train {
namespace {

/// "f32[32,128]"
std::string form_of(const Tensor& tensor) { return tensor ? join(tensor.dtype(), tensor.shape()) : "none"; }

}  // namespace

TapeRecorder::TapeRecorder(const std::vector<optim::Parameter>& parameters) {
  for (const optim::Parameter& parameter : parameters)
    if (parameter.tensor.slot) names_.emplace(parameter.tensor.slot.get(), parameter.name);
}

std::vector<TapeNode> TapeRecorder::take() {
  const uint64_t before = tape_.empty() ? 0 : tape_.front().number - 1;
  for (TapeNode& node : tape_) {
    node.number -= before;
    for (TapeInput& input : node.inputs) input.from -= std::min(input.from, before);
  }
  return std::exchange(tape_, {});
}

void TapeRecorder::before(const char* name, std::span<const Tensor* const> inputs) {
  TapeNode& node = open_.emplace_back();
  node.op = name;
  node.module = NameScope::path();
  for (const Tensor* input : inputs) node.inputs.push_back(describe_input(*input));
  const autograd::Keeper* keeper = autograd::mode().keeper;
  if (const void* segment = keeper ? keeper->segment() : nullptr)
    node.segment = segments_.try_emplace(segment, static_cast<int>(segments_.size()) + 1).first->second;
}

void TapeRecorder::forward(const char*, Where where, std::span<const Tensor> outputs) {
  now_ = std::move(open_.back());
  open_.pop_back();
  now_.place = place_of(where);
  for (const Tensor& output : outputs) now_.outputs.push_back(form_of(output));
}

void TapeRecorder::saved(const autograd::Node&, const Tensor& tensor, const autograd::Hole* hole) {
  const bool parameter = tensor.slot && tensor.slot->leaf;
  const bool first = !parameter && held_.insert(tensor.storage()).second;
  const int64_t bytes = first ? tensor.storage()->bytes() : 0;
  now_.saved.push_back({form_of(tensor), hole ? 0 : bytes, hole ? bytes : 0});
}

void TapeRecorder::recorded(const autograd::Node& node) {
  now_.number = node.number;
  tape_.push_back(std::move(now_));
}

TapeInput TapeRecorder::describe_input(const Tensor& tensor) const {
  TapeInput input{.tensor = form_of(tensor)};
  if (const autograd::Slot* slot = tensor.slot.get()) {
    if (slot->producer) input.from = slot->producer->number;
    if (const auto name = names_.find(slot); name != names_.end()) input.name = name->second;
  }
  return input;
}

}  // namespace cinta::train
