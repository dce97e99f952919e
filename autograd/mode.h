// What every op on this thread is subject to: is it recorded, who decides what saved tensors become, who watches.
#pragma once
#include <memory>
#include <span>
#include <utility>

#include "cinta/autograd/node.h"

namespace cinta::autograd {

/// Something that can bring a saved tensor back later: a segment to run again, a copy in host memory, a shard to
/// gather.
struct Hole {
  virtual ~Hole() = default;
  /// The tensor that was given index `index` when it was saved. `where` is the call of the op that asks, for errors.
  virtual Tensor fill(int index, Where where) = 0;
};

/// Decides what becomes of the tensors that ops save while it is in charge (checkpoint, offload).
struct Keeper {
  virtual ~Keeper() = default;
  /// Takes a saved tensor over: returns the hole and index it can be had back from, or {null, 0} to have it kept as it
  /// is.
  virtual std::pair<std::shared_ptr<Hole>, int> keep(const Tensor& tensor) = 0;
  /// The checkpointed segment that runs, for the first time or again (no other begins inside it), or null.
  virtual const void* segment() const { return nullptr; }
  /// True iff a segment is being re-run: ops save, but nothing is recorded.
  virtual bool replaying() const { return false; }
  /// Called with a tensor that `op` reads and that is not among its inputs at the door (note_read).
  virtual void note(const char* /*op*/, const Tensor&) {}
  /// Called for an op that ran and is not recorded: none of its inputs is tracked, or nothing is recorded here and now.
  virtual void pass(const char* /*op*/, std::span<const Tensor* const> /*inputs*/,
                    std::span<const Tensor> /*outputs*/) {}
  /// Called for an op about to run, some of its inputs tracked; true when `outputs` were filled from an earlier run
  /// instead.
  virtual bool recall(const char*, std::span<const Tensor* const> /*inputs*/, std::vector<Tensor>&) { return false; }
  /// Called with the outputs of a tracked op that ran; true when this keeper wants the op's saved tensors left as they
  /// are.
  virtual bool retain(const char*, std::span<const Tensor>) { return false; }
};

/// Watches ops at the door and in backward: profiling, the hunt for NaN, traces. Ops may run inside a backward (a rule
/// written with ops, a segment that is run again), so what is called here nests.
struct Observer {
  virtual ~Observer() = default;
  /// An op is about to run; it has run. One that throws is never heard of again.
  virtual void before(const char* /*name*/, std::span<const Tensor* const> /*inputs*/) {}
  virtual void forward(const char* name, Where where, std::span<const Tensor> outputs) = 0;
  /// The op that ran last, now `node`, keeps `tensor` for its backward; under a keeper that took it, `hole` does.
  virtual void saved(const Node& /*node*/, const Tensor& /*tensor*/, const Hole* /*hole*/) {}
  /// The op that ran last is on the tape as `node`, and has saved what it wants.
  virtual void recorded(const Node& /*node*/) {}
  /// A node's backward is about to run, on these gradients of its outputs (empty: of one nobody used); it has run.
  virtual void before_backward(const Node& /*node*/, std::span<const Tensor> /*output_gradients*/) {}
  virtual void backward(const Node& node, std::span<const Tensor> input_gradients) = 0;
  /// A stretch of work that is no op begins; it ends (Phase).
  virtual void enter(const char* /*phase*/) {}
  virtual void leave(const char* /*phase*/) {}
};

struct Autocast;

struct Mode {
  bool recording = true;
  Keeper* keeper = nullptr;
  Observer* observer = nullptr;
  const Node* saving = nullptr;                        ///< the node whose op is saving right now
  bool releasing = false;                              ///< the walk under way lets go of each node that has run
  std::shared_ptr<const Autocast> autocast = nullptr;  ///< the types that ops compute in; null: those they are given
};

/// This thread's mode.
inline Mode& mode() {
  thread_local Mode mode;
  return mode;
}

/// Tells the keeper in charge that `op` reads `tensor`, where the door does not see it: an option, what autocast
/// presents a copy of, the operand of a function that is no op of the tape.
inline void note_read(const char* op, const Tensor& tensor) {
  if (mode().keeper && tensor) [[unlikely]]
    mode().keeper->note(op, tensor);
}

/// Sets one member of the mode for a scope: `Scoped off(&Mode::recording, false);`.
template <class T>
class Scoped {
 public:
  Scoped(T Mode::*member, T value) : member_(member), before_(std::exchange(mode().*member, std::move(value))) {}
  ~Scoped() { mode().*member_ = std::move(before_); }
  Scoped(const Scoped&) = delete;

 private:
  T Mode::*member_;
  T before_;
};

/// While alive, ops on this thread are not recorded.
struct NoGrad : Scoped<bool> {
  NoGrad() : Scoped(&Mode::recording, false) {}
};

/// A stretch of work that an observer shall see by name: the walk backwards, the optimizer's step.
class Phase {
 public:
  explicit Phase(const char* name) : name_(name) {
    if (Observer* observer = mode().observer) [[unlikely]]
      observer->enter(name_);
  }
  ~Phase() {
    if (Observer* observer = mode().observer) [[unlikely]]
      observer->leave(name_);
  }
  Phase(const Phase&) = delete;

 private:
  const char* name_;
};

}  // namespace cinta::autograd
