// The parts of the door that need no template.
#include "cinta/autograd/function.h"

#include <utility>

#include "cinta/autograd/tape.h"

namespace cinta::autograd {
namespace {

/// The identity, as an op: a second seat for a tensor, where a walk can be made to stop.
struct Alias {
  static constexpr const char* name = "alias";
  static constexpr bool backward_uses_ops = true;
  Tensor forward(const Tensor& x) { return detach(x); }
  void save(const Tensor&, const Tensor&) {}
  void backward(const Tensor& dy, Sinks sinks) { sinks[0].put(dy); }
};

}  // namespace

std::vector<std::shared_ptr<Slot>> slots_of(const std::vector<const Tensor*>& inputs) {
  std::vector<std::shared_ptr<Slot>> slots;
  for (const Tensor* input : inputs) slots.push_back(input->slot);
  return slots;
}

void attach(const std::shared_ptr<Node>& node, Where where, std::span<Tensor* const> outputs) {
  node->where = where;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!is_floating(outputs[i]->dtype())) continue;
    outputs[i]->storage()->mark_made(node->name());
    auto slot = make_small<Slot>();
    slot->producer = node;
    slot->index = static_cast<int>(i);
    slot->dtype = outputs[i]->dtype();
    node->outputs[i] = slot.get();
    outputs[i]->slot = std::move(slot);
  }
}

void attach_placeholders(std::span<Tensor* const> outputs) {
  for (Tensor* output : outputs)
    if (is_floating(output->dtype())) output->slot = std::make_shared<Slot>();
}

void backward_composed(std::span<const Tensor> inputs,
                       const Callback<std::vector<Tensor>(std::span<const Tensor>)>& composed,
                       std::span<const Tensor> dys, Sinks sinks) {
  std::vector<Tensor> seats(inputs.begin(), inputs.end()), wanted;
  for (size_t i = 0; i < sinks.size(); ++i) {
    if (!sinks[i].wanted()) continue;
    seats[i] = apply(Alias{}, Where(), inputs[i]);
    wanted.push_back(seats[i]);
  }
  // The walk below must end at the seats: what lies behind them belongs to the walk that is under way. They are tied to
  // it again afterwards, so that the gradients can be differentiated.
  std::vector<std::shared_ptr<Node>> behind;
  for (const Tensor& seat : wanted) behind.push_back(std::exchange(seat.slot->producer, nullptr));
  const std::vector<Tensor> outputs = composed(seats);
  std::vector<Tensor> used, seeds;
  for (size_t i = 0; i < dys.size(); ++i) {
    if (!dys[i]) continue;
    used.push_back(outputs[i]);
    seeds.push_back(dys[i]);
  }
  std::vector<Tensor> gradients = grad(used, wanted, {.create_graph = true, .stop_at_inputs = true, .seeds = seeds});
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i].slot->producer = std::move(behind[i]);
  size_t next = 0;
  for (Sink& sink : sinks) {
    if (!sink.wanted()) continue;
    if (Tensor& gradient = gradients[next++]) sink.put(std::move(gradient));
  }
}

void no_second_gradient(const char* name) {
  throw ValueError(join("[", name, "] the gradient of this op cannot itself be differentiated"));
}

}  // namespace cinta::autograd
