// One walk serves backward() and grad(): collect the nodes, see which lead to something wanted, count contributions,
// run in reverse order of recording.
#include "cinta/autograd/tape.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "cinta/autograd/autocast.h"
#include "cinta/autograd/sink.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/core/context.h"

namespace cinta::autograd {
namespace {

std::atomic<uint64_t> next_walk{1};

class Walk {
 public:
  Walk(const std::vector<Tensor>& roots, const WalkOptions& options, Where where)
      : roots_(roots), options_(options), where_(where) {}
  Walk(const std::vector<Tensor>& roots, const std::vector<Tensor>& inputs, const WalkOptions& options, Where where)
      : Walk(roots, options, where) {  // whole from here on: an error below is cleaned up by the destructor
    capturing_ = true;
    captured_.resize(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      require(tracked(inputs[i]), "grad", where, "inputs that are on the tape, given as input ", i,
              " one that is not: ", inputs[i]);
      const Slot& slot = *inputs[i].slot;
      require(slot.capture < 0 || slot.captured_by != this, "grad", where, "each input is given once: ", inputs[i]);
      require(slot.capture < 0, "grad", where, "inputs that no other walk under way is to return the gradient of, ",
              "given ", inputs[i]);
      inputs[i].slot->capture = static_cast<int>(i);
      inputs[i].slot->captured_by = this;
      capture_slots_.push_back(inputs[i].slot);
    }
  }
  ~Walk() {  // also after an error: leave no state of this walk behind, and that of a walk around it as it was
    for (auto& slot : capture_slots_) slot->capture = -1;
    if (running_ && around_ && !capturing_) around_->broken_ = true;  // leaves may hold a part
    if (innermost == this) innermost = around_;
    if (owns_slots_) clear_slots();
    for (auto& node : nodes_)
      if (node) node->needed = false;
    for (auto& [slot, pending, incoming] : slots_around_) slot->pending = pending, slot->incoming = std::move(incoming);
    for (auto& node : nodes_around_) node->needed = true;
  }

  std::vector<Tensor> run() {
    // Its ops keep nothing the first time, and are not on the tape when they run again.
    require(!mode().keeper || !mode().keeper->segment(), name(), where_,
            "a walk that begins outside of checkpointed segments, given one that begins inside");
    const Phase phase("backward");
    around_ = innermost;
    collect();
    set_aside();
    count();
    spare_others();
    seed();
    Scoped recording(&Mode::recording, options_.create_graph);
    Scoped keeper(&Mode::keeper, static_cast<Keeper*>(nullptr));
    Scoped releasing(&Mode::releasing, !keeps_graph());
    const AutocastScope given(std::nullopt);
    running_ = true;
    innermost = this;
    for (auto& node : nodes_) {
      if (!node->needed) continue;
      step(*node);
      require(!broken_, name(), where_, "a walk inside this one, in ", node->name(),
              " or a hook, that does not fail: it has left sums that are not whole");
      node->needed = false;
      if (!keeps_graph()) pass(node);
    }
    running_ = false;
    innermost = around_;
    return std::move(captured_);
  }

 private:
  const char* name() const { return capturing_ ? "grad" : "backward"; }

  /// True iff this walk, and not one around it, is to return the slot's gradient.
  bool captured(const Slot& slot) const { return slot.capture >= 0 && slot.captured_by == this; }

  bool keeps_graph() const { return options_.retain_graph || options_.create_graph; }

  bool wanted(const Slot& slot) const {
    return captured(slot) || (!capturing_ && slot.leaf) || (slot.producer && slot.producer->needed);
  }

  void collect() {
    const uint64_t walk = number_ = next_walk.fetch_add(1, std::memory_order_relaxed);
    std::vector<std::shared_ptr<Node>> open;
    auto meet = [&](const Slot& slot) {
      require(!slot.passed_by, name(), where_, "the graph behind the output of ", slot.passed_by ? slot.passed_by : "",
              " was released by an earlier walk; use retain_graph there");
      require(slot.leaf || slot.hooks.empty(), name(), where_,
              "hooks of leaves alone (require_gradient), given one of the output of ",
              slot.producer ? slot.producer->name() : "");
      if (!slot.producer || slot.producer->met_by == walk) return;
      slot.producer->met_by = walk;
      if (std::exchange(slot.producer->needed, false)) nodes_around_.push_back(slot.producer);
      if (!(options_.stop_at_inputs && captured(slot))) open.push_back(slot.producer);
    };
    for (const Tensor& root : roots_) {
      require(tracked(root), name(), where_, "an output that is on the tape, given one that is not: ", root);
      meet(*root.slot);
    }
    while (!open.empty()) {
      std::shared_ptr<Node> node = std::move(open.back());
      open.pop_back();
      for (auto& slot : node->inputs)
        if (slot) meet(*slot);
      nodes_.push_back(std::move(node));
    }
    std::sort(nodes_.begin(), nodes_.end(), [](auto& a, auto& b) { return a->number > b->number; });
  }

  void clear_slots() {
    for (auto& slot : roots_)
      if (slot.slot) slot.slot->incoming = {};
    auto reset = [this](const std::shared_ptr<Slot>& slot) {
      if (!slot) return;
      if (running_ && slot->leaf && !capturing_) slot->has_gradient = false;  // part of a sum, or not written at all
      slot->pending = 0;
      slot->incoming = {};
    };
    for (auto& slot : passed_slots_) reset(slot);
    for (auto& node : nodes_)
      if (node)
        for (auto& slot : node->inputs) reset(slot);
  }

  /// What a walk around this one, from a hook or a rule of which this one runs, has added up so far.
  void set_aside() {
    const auto keep = [this](const std::shared_ptr<Slot>& slot) {
      if (!slot || (slot->pending == 0 && !slot->incoming)) return;
      slots_around_.push_back({slot, std::exchange(slot->pending, 0), std::exchange(slot->incoming, {})});
    };
    for (const auto& node : nodes_) {
      for (const auto& slot : node->inputs) keep(slot);
      for (Slot* slot : node->outputs)
        if (slot) keep(slot->shared_from_this());
    }
    for (const Tensor& root : roots_) keep(root.slot);
    owns_slots_ = true;
  }

  void count() {
    for (size_t i = nodes_.size(); i-- > 0;) {  // inputs before outputs
      Node& node = *nodes_[i];
      for (auto& slot : node.inputs) {
        if (!slot || !wanted(*slot)) continue;
        node.needed = true;
        ++slot->pending;
      }
    }
  }

  /// Refuses to release a node that a walk around this one has yet to come to.
  void spare_others() const {
    if (keeps_graph()) return;
    for (const Walk* walk = this; walk; walk = walk->around_)
      for (const auto& node : walk->nodes_around_)
        require(!node->needed || node->met_by != number_, name(), where_,
                "retain_graph where a walk around this one has yet to come to ", node->name());
  }

  void seed() {
    require<ShapeError>(options_.seeds.empty() || options_.seeds.size() == roots_.size(), name(), where_,
                        "one seed for each of ", roots_.size(), " outputs, given ", options_.seeds.size());
    for (size_t i = 0; i < roots_.size(); ++i) {
      const Tensor& root = roots_[i];
      Tensor seed;
      if (options_.seeds.empty()) {
        require<ShapeError>(root.numel() == 1, name(), where_, "an output of one element, or a seed: ", root);
        seed = empty(root.shape(), root.dtype(), root.device());
        kernels::fill(root.device(), seed, 1.0);
      } else {
        seed = options_.seeds[i];
        require<ShapeError>(seed.shape() == root.shape(), name(), where_, "a seed of the output's shape: ", root,
                            ", given ", seed);
        require<DtypeError>(seed.dtype() == root.dtype(), name(), where_, "a seed of the output's type: ", root,
                            ", given ", seed);
        require<DeviceError>(seed.device() == root.device(), name(), where_, "a seed on the output's device: ", root,
                             ", given ", seed);
      }
      Scoped recording(&Mode::recording, options_.create_graph);
      Sink(root.slot.get()).put(seed);
      if (root.slot->pending == 0) finish(*root.slot);  // the root may itself be a leaf or captured
    }
  }

  /// All contributions to `slot` have landed.
  void finish(Slot& slot) {
    if (captured(slot)) captured_[static_cast<size_t>(slot.capture)] = slot.incoming;
    if (slot.leaf && !capturing_) settle_leaf(slot);
  }

  void step(Node& node) {
    std::vector<Tensor> dys(node.outputs.size());
    bool any = false;
    for (size_t i = 0; i < dys.size(); ++i) {
      Slot* slot = node.outputs[i];
      if (!slot || !slot->incoming) continue;
      dys[i] = std::move(slot->incoming);
      slot->incoming = {};
      any = true;
    }
    std::vector<Sink> sinks(node.inputs.size());
    for (size_t i = 0; i < sinks.size(); ++i)
      if (node.inputs[i] && wanted(*node.inputs[i])) sinks[i] = Sink(node.inputs[i].get());
    if (any && mode().observer) mode().observer->before_backward(node, dys);
    if (any) node.backward(dys, sinks);
    if (any && mode().observer) watch(node, sinks);
    for (size_t i = 0; i < sinks.size(); ++i)
      if (sinks[i].wanted() && --node.inputs[i]->pending == 0) finish(*node.inputs[i]);
  }

  static void watch(const Node& node, std::span<const Sink> sinks) {
    std::vector<Tensor> gradients;
    for (size_t i = 0; i < sinks.size(); ++i) {
      if (!sinks[i].wanted()) continue;
      const Slot& slot = *node.inputs[i];
      gradients.push_back(slot.incoming ? slot.incoming : slot.has_gradient ? slot.gradient : Tensor());
    }
    mode().observer->backward(node, gradients);
  }

  /// Lets go of a node that has run: its saved tensors are freed here. The slots of its inputs carry what the walk
  /// still needs, so they stay to the end.
  void pass(std::shared_ptr<Node>& node) {
    std::shared_ptr<Node> last = std::move(node);
    for (auto& slot : last->inputs)
      if (slot) passed_slots_.push_back(std::move(slot));
    for (Slot* slot : last->outputs) {
      if (!slot) continue;
      slot->passed_by = last->name();
      slot->producer.reset();
    }
  }

  const std::vector<Tensor>& roots_;
  const WalkOptions& options_;
  Where where_;
  static thread_local Walk* innermost;  ///< of this thread's that are running
  Walk* around_ = nullptr;
  bool broken_ = false;  ///< a walk to leaves, inside this one, has ended among its nodes
  uint64_t number_ = 0;
  bool capturing_ = false;
  bool owns_slots_ = false;  ///< what slots hold from now on is this walk's
  bool running_ = false;     ///< also when an error has ended the walk among its nodes
  std::vector<std::shared_ptr<Node>> nodes_;
  std::vector<std::shared_ptr<Slot>> passed_slots_, capture_slots_;
  struct Around {
    std::shared_ptr<Slot> slot;
    int pending;
    Tensor incoming;
  };
  std::vector<Around> slots_around_;  ///< of the walk that this one runs in
  std::vector<std::shared_ptr<Node>> nodes_around_;
  std::vector<Tensor> captured_;
};

thread_local Walk* Walk::innermost = nullptr;

}  // namespace

void backward(const Tensor& root, const WalkOptions& options, Where where) { Walk({root}, options, where).run(); }

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const WalkOptions& options, Where where) {
  return Walk(outputs, inputs, options, where).run();
}

}  // namespace cinta::autograd
