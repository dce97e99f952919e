// Keeping, bringing back, and the check that nobody wrote over a saved tensor.
#include "cinta/autograd/saved.h"

namespace cinta::autograd {

void Saved::keep(const Tensor& tensor) {
  kept_ = static_cast<bool>(tensor);
  if (!kept_) return;
  const Node* node = mode().saving;
  op_ = node ? node->name() : "";
  where_ = node ? node->where : Where();
  const bool own_output = tensor.slot && tensor.slot->producer && tensor.slot->producer.get() == node;
  if (own_output) output_ = tensor.slot;
  // A leaf is kept alive by its owner, so holding on to it costs nothing.
  const bool leaf = tensor.slot && tensor.slot->leaf;
  if (Keeper* keeper = mode().keeper; keeper && !leaf) {
    std::tie(hole_, index_) = keeper->keep(tensor);
    if (hole_ && !own_output) input_ = tensor.slot;
  }
  if (Observer* observer = mode().observer; observer && node) [[unlikely]]
    observer->saved(*node, tensor, hole_.get());
  if (hole_) return;
  value_ = own_output ? detach(tensor) : tensor;
  version_ = tensor.storage()->version();
}

Tensor Saved::get() {
  if (hole_) {
    value_ = hole_->fill(index_, where_);
    value_.slot = input_;
    version_ = value_.storage()->version();
    hole_.reset();
    input_.reset();
  }
  require(value_ || !kept_, op_, where_, "a tensor saved for backward was written over by a walk that has failed");
  if (value_)
    require(value_.storage()->version() == version_, op_, where_, "a tensor saved for backward, ", value_,
            ", was overwritten in place by ", value_.storage()->last_writer());
  Tensor out = value_;
  if (mode().recording && !out.slot) out.slot = output_.lock();  // not in value_: the node would hold itself
  return out;
}

Tensor Saved::take() {
  Tensor out = detach(get());
  if (mode().releasing && out.storage().use_count() == 2) value_ = {};  // this one and that
  return out;
}

}  // namespace cinta::autograd
