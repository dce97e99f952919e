// apply: the one door through which every op runs. What happens at every op (recording, watching, checkpointing) hangs
// here and nowhere else.
//
// An op is a plain struct:
//   static constexpr const char* name = "gelu";             // or a member function name()
//   Tensor forward(const Tensor& x);                        // or std::vector<Tensor> for several outputs
//   void save(const Tensor& y, const Tensor& x);            // fills its Saved members
//   void backward(const Tensor& dy, Sinks sinks);           // or std::span<const Tensor> for several outputs
// For gradients of gradients it either writes backward with ops (static constexpr bool backward_uses_ops = true), or
// has
//   std::vector<Tensor> inputs();                           // its inputs as saved, in order
//   Tensor composed(std::span<const Tensor> inputs);        // the same function written with other ops
// Of fused rows (backends/kernel.h) it says which it calls:
//   std::array<FusedRow, 1> fused_rows() const;
// and where the device lacks one of them, composed(inputs) is run in its place, before forward() and save(). A backward
// row is asked for where the op is recorded.
// An op whose inputs get its gradient as it is, but for sums over broadcast dimensions, says so (static constexpr bool
// passes_gradient = true).
// An op without backward is never recorded. One with `static constexpr bool takes_any_type = true` is shown its inputs
// as they are, whatever autocast says of its name.
#pragma once
#include <array>
#include <initializer_list>

#include "cinta/autograd/autocast.h"
#include "cinta/autograd/saved.h"
#include "cinta/autograd/sink.h"
#include "cinta/backends/kernel.h"
#include "cinta/core/small_blocks.h"

namespace cinta::autograd {

/// Differentiates composed(inputs) on the tape: how a fused op's gradient is itself recorded.
void backward_composed(std::span<const Tensor> inputs,
                       const Callback<std::vector<Tensor>(std::span<const Tensor>)>& composed,
                       std::span<const Tensor> dys, Sinks sinks);
[[noreturn]] void no_second_gradient(const char* name);

template <class Op>
const char* op_name(const Op& op) {
  if constexpr (requires { op.name(); })
    return op.name();
  else
    return Op::name;
}

inline std::vector<Tensor> as_list(Tensor tensor) { return {std::move(tensor)}; }
inline std::vector<Tensor> as_list(std::vector<Tensor> tensors) { return tensors; }

template <class Op, class Inputs, class Outputs>
struct OpNode final : SeatedNode<Inputs, Outputs> {
  OpNode(Op&& op, Inputs inputs, Outputs outputs)
      : SeatedNode<Inputs, Outputs>(std::move(inputs), std::move(outputs)), op(std::move(op)) {}
  const char* name() const override { return op_name(op); }
  bool passes_gradient() const override {
    if constexpr (requires { Op::passes_gradient; })
      return Op::passes_gradient;
    else
      return false;
  }
  void backward(std::span<const Tensor> dys, Sinks sinks) override {
    if constexpr (requires(std::span<const Tensor> in) { op.composed(in), op.inputs(); }) {
      if (mode().recording)
        return backward_composed(
            op.inputs(), [this](std::span<const Tensor> in) { return as_list(op.composed(in)); }, dys, sinks);
    } else if constexpr (!requires { Op::backward_uses_ops; }) {
      if (mode().recording) no_second_gradient(op_name(op));
    }
    if constexpr (requires { op.backward(dys, sinks); })
      op.backward(dys, sinks);
    else
      op.backward(dys[0], sinks);
  }
  Op op;
};

/// The slots of an op's inputs, and room for those of its outputs, in the container that the op's arguments came in.
template <size_t count>
std::array<std::shared_ptr<Slot>, count> slots_of(const std::array<const Tensor*, count>& inputs) {
  std::array<std::shared_ptr<Slot>, count> slots;
  for (size_t i = 0; i < count; ++i) slots[i] = inputs[i]->slot;
  return slots;
}
std::vector<std::shared_ptr<Slot>> slots_of(const std::vector<const Tensor*>& inputs);
inline std::array<Slot*, 1> room_for(const Tensor&) { return {}; }
inline std::vector<Slot*> room_for(const std::vector<Tensor>& out) { return std::vector<Slot*>(out.size()); }

/// Gives the floating-point outputs of `node` their slots.
void attach(const std::shared_ptr<Node>& node, Where where, std::span<Tensor* const> outputs);
/// Gives the outputs of an op in a re-run segment slots that lead nowhere.
void attach_placeholders(std::span<Tensor* const> outputs);

inline std::array<Tensor*, 1> output_pointers(Tensor& out) { return {&out}; }
inline std::vector<Tensor*> output_pointers(std::vector<Tensor>& out) {
  std::vector<Tensor*> pointers;
  for (Tensor& tensor : out) pointers.push_back(&tensor);
  return pointers;
}
inline std::span<const Tensor> output_span(const Tensor& out) { return {&out, 1}; }
inline std::span<const Tensor> output_span(const std::vector<Tensor>& out) { return out; }

/// Whether an op with a backward is recorded on `inputs`, pointers to tensors, here and now; what it keeps for backward
/// alone need not be made otherwise.
template <class Pointers = std::initializer_list<const Tensor*>>
bool records(const Pointers& inputs) {
  bool tracked = false;
  for (const Tensor* input : inputs) tracked = tracked || input->slot;
  return tracked && mode().recording;
}

struct FusedRow {
  const KernelRow* forward;
  const KernelRow* backward = nullptr;  ///< null: backward has other rows
};

/// The device of `inputs` has all the fused rows that `op` calls.
template <class Op, class Pointers>
bool has_fused_rows(const Op& op, const Pointers& inputs) {
  const Device device = inputs[0]->device();
  for (const FusedRow& row : op.fused_rows()) {
    if (!row.forward->has(device)) return false;
    if (row.backward && !row.backward->has(device) && records(inputs)) return false;
  }
  return true;
}

/// Runs `op` on `in...` (tensors, or one vector of tensors); `inputs` lists the same tensors for the tape.
template <class Op, class Pointers, class... Ins>
auto apply_listed(Op op, Where where, const Pointers& inputs, const Ins&... in) {
  using Out = decltype(op.forward(in...));
  if constexpr (requires { op.fused_rows(); })
    if (!has_fused_rows(op, inputs)) [[unlikely]] {
      const AutocastScope given(std::nullopt);  // which has shown the op its inputs already
      return op.composed(std::array<Tensor, sizeof...(in)>{in...});
    }
  Mode& now = mode();
  bool record = false;
  if constexpr (requires { &Op::backward; }) record = records(inputs);
  Out out;
  std::vector<Tensor> recalled;
  const bool known = record && now.keeper && now.keeper->recall(op_name(op), inputs, recalled);
  if (known) {
    if constexpr (std::is_same_v<Out, Tensor>)
      out = std::move(recalled[0]);
    else
      out = std::move(recalled);
  } else {
    if (now.observer) [[unlikely]]
      now.observer->before(op_name(op), inputs);
    NoGrad off;
    out = op.forward(in...);
    if (now.observer) [[unlikely]]
      now.observer->forward(op_name(op), where, output_span(out));
  }
  if constexpr (requires { &Op::backward; }) {
    if (!record) {
      if (now.keeper) [[unlikely]]
        now.keeper->pass(op_name(op), inputs, output_span(out));
      return out;
    }
    if (now.keeper && now.keeper->replaying()) {
      if (!known) op.save(out, in...);
      attach_placeholders(output_pointers(out));
      return out;
    }
    using OpNode = OpNode<Op, decltype(slots_of(inputs)), decltype(room_for(out))>;
    auto node = make_small<OpNode>(std::move(op), slots_of(inputs), room_for(out));
    attach(node, where, output_pointers(out));
    Scoped saving(&Mode::saving, static_cast<const Node*>(node.get()));
    Keeper* keeper = now.keeper;
    if (keeper && keeper->retain(node->name(), output_span(out))) keeper = nullptr;
    Scoped keeping(&Mode::keeper, keeper);
    node->op.save(out, in...);
    if (now.observer) [[unlikely]]
      now.observer->recorded(*node);
  }
  return out;
}

/// The same on what autocast presents instead of the inputs.
template <class Op, class... Tensors>
auto apply_presented(Op op, Where where, Dtype dtype, const Tensors&... in) {
  const std::array<Tensor, sizeof...(in)> all{presented(op_name(op), in, dtype)...};
  return std::apply(
      [&](const auto&... each) {
        return apply_listed(std::move(op), where, std::array<const Tensor*, sizeof...(in)>{&each...}, each...);
      },
      all);
}

template <class Op, class... Tensors>
auto apply(Op op, Where where, const Tensors&... in) {
  const std::array<const Tensor*, sizeof...(in)> inputs{&in...};
  if constexpr (!requires { Op::takes_any_type; })
    if (mode().autocast) [[unlikely]]
      if (const auto dtype = presented_type(op_name(op), inputs))
        return apply_presented(std::move(op), where, *dtype, in...);
  return apply_listed(std::move(op), where, inputs, in...);
}

/// For ops on a list of tensors.
template <class Op>
auto apply(Op op, Where where, const std::vector<Tensor>& in) {
  std::vector<const Tensor*> inputs;
  for (const Tensor& tensor : in) inputs.push_back(&tensor);
  if (mode().autocast) [[unlikely]]
    if (const auto dtype = presented_type(op_name(op), inputs)) {
      std::vector<Tensor> all;
      all.reserve(in.size());
      for (size_t i = 0; i < in.size(); ++i) inputs[i] = &all.emplace_back(presented(op_name(op), in[i], *dtype));
      return apply_listed(std::move(op), where, inputs, all);
    }
  return apply_listed(std::move(op), where, inputs, in);
}

}  // namespace cinta::autograd
