// The rules of adding: contributions of one walk are summed first, in the order of the walk, then added to the leaf
// once. The sum of one, and of two where the leaf's buffer holds nothing yet, comes out the same in that buffer.
#include "cinta/autograd/sink.h"

#include "cinta/autograd/autocast.h"
#include "cinta/autograd/copy.h"
#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/core/context.h"

namespace cinta::autograd {
namespace {

/// True iff nobody but this handle can see the memory, so that it may be added to in place.
bool sole_owner(const Tensor& tensor) {
  return tensor.storage().use_count() == 1 && !tensor.storage()->stays && !tensor.slot && tensor.contiguous();
}

/// Says so of a sum that is added to in place; a narrower copy of what it was is of no use.
void overwritten(const Tensor& sum) {
  sum.storage()->mark_written("backward");
  sum.storage()->shadow = {};
}

/// The copy in `dtype` that was written with this gradient, for the caller alone; absent where there is none.
Tensor take_shadow(const Tensor& gradient, Dtype dtype) {
  Shadow& shadow = gradient.storage()->shadow;
  if (shadow.of != Shadow::Of::gradient) return {};
  Tensor copy = current_shadow(gradient, dtype);
  if (copy) shadow = {};
  return copy;
}

/// Gives a leaf that is about to be written a buffer, unless it has one.
void give_buffer(Slot& slot, const Shape& shape, Device device) {
  if (slot.home && context().captures()) slot.home->stay();
  if (slot.gradient) return;
  const CategoryScope scope(Category::gradients);
  slot.gradient = slot.home ? slot.home->buffer() : empty(shape, slot.dtype, device);
}

/// The tape's own addition, an op like any other so that a gradient of gradients passes through it.
struct AddGradients {
  static constexpr const char* name = "add_gradients";
  static constexpr bool backward_uses_ops = true;
  Tensor forward(const Tensor& left, const Tensor& right) {
    Tensor out = empty(left.shape(), left.dtype(), left.device());
    kernels::add(left.device(), out, left, right);
    return out;
  }
  void save(const Tensor&, const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) {
    for (Sink& sink : sinks)
      if (sink.wanted()) sink.put(dy);
  }
};

}  // namespace

Tensor in_place_of(const Tensor& operand) {
  if (!sole_owner(operand)) return empty_like(operand);
  overwritten(operand);
  return operand;
}

void Sink::put(Tensor gradient) {
  // What an op was shown of a tensor may be narrower than that; and a gradient may come with a narrower copy.
  if (gradient.dtype() != slot_->dtype) {
    Tensor copy = mode().recording ? Tensor() : take_shadow(gradient, slot_->dtype);
    gradient = copy ? std::move(copy) : apply(Copy{"cast", slot_->dtype}, Where(), gradient);
  }
  Tensor& sum = slot_->incoming;
  if (!sum) {
    sum = std::move(gradient);
  } else if (!mode().recording && sole_owner(sum)) {
    kernels::accumulate(sum.device(), sum, gradient);
    overwritten(sum);
  } else {
    sum = apply(AddGradients{}, Where(), sum, gradient);
  }
}

Sink::Target Sink::target(const Shape& shape, Device device) {
  Slot& slot = *slot_;
  const Dtype dtype = slot.dtype;
  const bool in_place = slot.pending == 1 || (slot.pending == 2 && !slot.has_gradient);
  const bool straight = slot.leaf && slot.capture < 0 && in_place && !slot.incoming && !mode().recording;
  if (straight) {
    const float beta = slot.asked_for_gradient() ? 1.0f : 0.0f;
    give_buffer(slot, shape, device);
    slot.set_gradient(true);
    slot.gradient.storage()->mark_written("backward");
    return {slot.gradient.with_layout(shape, contiguous_strides(shape), slot.gradient.offset()), beta};
  }
  if (slot.incoming && sole_owner(slot.incoming)) {
    overwritten(slot.incoming);
    return {slot.incoming.with_layout(shape, contiguous_strides(shape), slot.incoming.offset()), 1.0f};
  }
  if (slot.incoming) {  // shared with somebody: add into memory of our own
    Tensor own = empty(shape, dtype, device);
    kernels::copy(device, own, slot.incoming);
    slot.incoming = own;
    return {own, 1.0f};
  }
  slot.incoming = empty(shape, dtype, device);
  return {detach(slot.incoming), 0.0f};
}

Tensor Sink::shadow_to_write(const Tensor& sum) {
  const Node* reader = slot_->pending == 1 ? slot_->producer.get() : nullptr;
  if (!reader || !reader->passes_gradient() || sum.dtype() != Dtype::f32) return {};
  for (const auto& input : reader->inputs)
    if (input && size_of(input->dtype) < size_of(sum.dtype()))
      return new_shadow("backward", sum, input->dtype, Shadow::Of::gradient);
  return {};
}

namespace {

/// Lets the leaf's hooks change its gradient. What they put in its place is copied to where that was: the buffer is
/// the leaf's own, later walks add to it, and what a hook hands in may be a view, or somebody else's.
void run_hooks(Slot& slot) {
  for (LeafHook& hook : slot.hooks) {
    const Tensor before = slot.gradient;
    Tensor given = before;  // what is refused below has changed nothing
    hook(given);
    require<ShapeError>(given && given.shape() == before.shape() && given.dtype() == before.dtype(), "hook", Where(),
                        "a hook leaves a gradient's shape and type: ", before.dtype(), before.shape(), " became ",
                        given);
    require<DeviceError>(given.device() == before.device(), "hook", Where(), "a hook leaves a gradient on ",
                         before.device(), ", given ", given);
    const bool same_storage = given.storage() == before.storage();
    if (same_storage && given.offset() == before.offset() && given.strides() == before.strides()) {
      if (mode().recording) slot.gradient = given;
      continue;
    }
    require(!context().captures(), "hook", Where(), "a hook of a captured step changes the gradient where it is");
    CategoryScope scope(Category::gradients);
    if (mode().recording) {
      slot.gradient = apply(Copy{"own_gradient"}, Where(), given);
      continue;
    }
    if (same_storage) given = apply(Copy{"own_gradient"}, Where(), given);  // they may overlap
    kernels::copy(before.device(), before, given);
    before.storage()->mark_written("hook");
  }
}

}  // namespace

void settle_leaf(Slot& slot) {
  Tensor sum = std::move(slot.incoming);
  slot.incoming = {};
  if (sum) {
    require(!mode().recording || !context().captures(), "backward", Where(),
            "a captured step's gradients of leaves are written where they are, without create_graph");
    const bool adds = slot.asked_for_gradient();
    if (adds && mode().recording) {
      slot.gradient = apply(AddGradients{}, Where(), slot.gradient, sum);
    } else if (adds) {
      give_buffer(slot, sum.shape(), sum.device());
      kernels::accumulate(sum.device(), slot.gradient, sum);
      slot.gradient.storage()->mark_written("backward");
    } else if (mode().recording) {
      // Memory of its own: what arrives may be a seed, a view with strides of 0, or what another leaf was given too,
      // and later walks add to a gradient in place. The leaf's old buffer knows no tape.
      CategoryScope scope(Category::gradients);
      slot.gradient = apply(Copy{"own_gradient"}, Where(), sum);
    } else {
      give_buffer(slot, sum.shape(), sum.device());
      kernels::copy(sum.device(), slot.gradient, sum);
      slot.gradient.storage()->mark_written("backward");
    }
    slot.set_gradient(true);
  }
  if (!slot.hooks.empty() && slot.asked_for_gradient()) run_hooks(slot);
}

}  // namespace cinta::autograd
