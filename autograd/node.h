// The tape's two records: Slot, what it knows of one tensor, and Node, one recorded op.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cinta/core/callback.h"
#include "cinta/core/tensor.h"

namespace cinta::autograd {

class Sink;
struct Node;

/// Called with a leaf's gradient, once per backward() that reaches the leaf, when the walk's last contribution has
/// landed. It sees the sum with what earlier walks have left there since clear_gradient(), not this walk's share alone.
/// grad() touches no leaf's gradient and calls no hook. Results of ops have none: a walk that meets one there throws
/// ValueError.
using LeafHook = Callback<void(Tensor& gradient)>;

/// Where a leaf's gradient lies among others, in memory that comes and goes.
struct GradientHome {
  virtual ~GradientHome() = default;
  /// The leaf's buffer, of any content.
  virtual Tensor buffer() = 0;
  /// A captured step knows its address from now on: the memory stays.
  virtual void stay() = 0;
};

/// What the tape knows of a tensor. A leaf has a gradient and hooks; any other slot has the node that produced it,
/// until a walk without retain_graph has passed that node.
struct Slot : std::enable_shared_from_this<Slot> {
  ~Slot();
  /// has_gradient, asked by who decides by it, or about to be set: a captured step keeps to it.
  bool asked_for_gradient();
  void set_gradient(bool there);
  bool leaf = false;
  Dtype dtype = Dtype::f32;         ///< of the values and of the gradient, in whatever type ops are shown them
  int index = 0;                    ///< which output of the producer
  std::shared_ptr<Node> producer;   ///< null for a leaf and for a slot whose node is gone
  const char* passed_by = nullptr;  ///< name of the producer that a walk has already used up
  Tensor gradient;                  ///< leaf: a buffer; holds a value iff has_gradient
  bool has_gradient = false;
  std::shared_ptr<GradientHome> home;  ///< leaf: gives it a buffer; absent: its buffer is memory of its own
  std::vector<LeafHook> hooks;

  // State of the walk that is under way.
  int pending = 0;                    ///< contributions still to come
  int capture = -1;                   ///< where grad() wants this gradient, or -1
  const void* captured_by = nullptr;  ///< that walk
  Tensor incoming;                    ///< sum of the contributions so far
};

/// One recorded op. Nodes are numbered in the order of recording, so a node's inputs always have smaller numbers.
struct Node {
  Node();
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual const char* name() const = 0;
  /// Puts the gradients of the inputs into `sinks`; an output nobody used has an empty tensor in `dys`.
  virtual void backward(std::span<const Tensor> dys, std::span<Sink> sinks) = 0;
  /// Whether backward hands the gradient of its output on as it came, so that whoever writes that gradient may write
  /// what the inputs' types need of it as well.
  virtual bool passes_gradient() const { return false; }

  uint64_t number;
  Where where;                              ///< the forward call
  std::span<std::shared_ptr<Slot>> inputs;  ///< null where an input needs no gradient
  std::span<Slot*> outputs;                 ///< null once the output's slot has died
  uint64_t met_by = 0;                      ///< number of the walk that last met this node
  bool needed = false;                      ///< in that walk: leads to something wanted

 protected:
  /// Drops the inputs. Chains of any length are torn down in a loop.
  void drop_inputs() noexcept;
};

/// A node with room for its seats in itself: containers of shared_ptr<Slot> and of Slot*.
template <class Inputs, class Outputs>
struct SeatedNode : Node {
  SeatedNode(Inputs in, Outputs out) : input_seats(std::move(in)), output_seats(std::move(out)) {
    inputs = input_seats;
    outputs = output_seats;
  }
  ~SeatedNode() override { drop_inputs(); }
  Inputs input_seats;
  Outputs output_seats;
};

/// True iff the tape follows this tensor.
inline bool tracked(const Tensor& tensor) { return tensor.slot != nullptr; }
/// Makes `tensor` a leaf: a place where gradients are kept. Throws DtypeError unless it is floating-point.
Tensor& require_gradient(Tensor& tensor, Where where = Where::current());
/// The gradient of a leaf; an empty tensor when there is none. Asked for in a captured step, its memory stays where it
/// is.
Tensor gradient(const Tensor& leaf);
/// Forgets a leaf's gradient and the tape it is on (its buffer is kept for the next one).
void clear_gradient(const Tensor& leaf);

}  // namespace cinta::autograd
