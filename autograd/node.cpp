// Life and death of slots and nodes. Long chains are torn down in a loop, not by recursion.
#include "cinta/autograd/node.h"

#include <atomic>

#include "cinta/core/context.h"

namespace cinta::autograd {
namespace {
std::atomic<uint64_t> next_number{1};
}

Node::Node() : number(next_number.fetch_add(1, std::memory_order_relaxed)) {}

void Node::drop_inputs() noexcept {
  // Whatever this node alone keeps alive is handed to the outermost destructor on this thread, which frees it in turn.
  thread_local std::vector<std::shared_ptr<Slot>>* doomed = nullptr;
  std::vector<std::shared_ptr<Slot>> mine;
  const bool outermost = doomed == nullptr;
  if (outermost) doomed = &mine;
  for (auto& slot : inputs)
    if (slot) doomed->push_back(std::move(slot));
  if (!outermost) return;
  while (!mine.empty()) {
    std::shared_ptr<Slot> slot = std::move(mine.back());
    mine.pop_back();
  }
  doomed = nullptr;
}

Slot::~Slot() {
  if (producer) producer->outputs[static_cast<size_t>(index)] = nullptr;
}

bool Slot::asked_for_gradient() {
  if (context().captures()) context().reads({shared_from_this(), &has_gradient});
  return has_gradient;
}

void Slot::set_gradient(bool there) {
  if (context().captures()) context().sets({shared_from_this(), &has_gradient}, there);
  has_gradient = there;
}

Tensor& require_gradient(Tensor& tensor, Where where) {
  require<DtypeError>(tensor && is_floating(tensor.dtype()), "require_gradient", where,
                      "a floating-point tensor, given ", tensor);
  require(!tensor.slot || tensor.slot->leaf, "require_gradient", where,
          "the tensor is not the result of an op: ", tensor);
  if (!tensor.slot) tensor.slot = std::make_shared<Slot>();
  tensor.slot->leaf = true;
  tensor.slot->dtype = tensor.dtype();
  return tensor;
}

Tensor gradient(const Tensor& leaf) {
  if (!leaf.slot || !leaf.slot->asked_for_gradient()) return {};
  if (leaf.slot->home && context().captures()) leaf.slot->home->stay();
  return leaf.slot->gradient;
}

void clear_gradient(const Tensor& leaf) {
  if (!leaf.slot) return;
  leaf.slot->set_gradient(false);
  leaf.slot->gradient.slot.reset();  // a taped gradient leads back to its leaf: they would keep each other alive
}

}  // namespace cinta::autograd
