// Checkpointing (Chen et al. 2016): a segment keeps its inputs only; the first backward that misses a tensor runs the
// segment again. Random numbers are pure functions of the step, so the re-run is bit-equal.
#pragma once
#include <string>
#include <string_view>

#include "cinta/autograd/mode.h"

namespace cinta::autograd {

using SegmentFunction = Callback<std::vector<Tensor>(std::span<const Tensor>)>;

/// Runs `function` on `inputs` as one segment. Ops named in `keep_ops` keep what they save and are not run again
/// (selective checkpointing); a name that no recorded op of the segment has throws ValueError. Inside another segment
/// this is a plain call; inside an OffloadScope the segment's inputs are offloaded. The function must compute the same
/// ops each time; a re-run that runs other ops, or that saves tensors of other shapes or types, throws ValueError at
/// the place of the op that needs it, and so does one that would read what was overwritten in place. No walk (tape.h)
/// begins inside a segment: it throws ValueError.
std::vector<Tensor> checkpoint_segment(const SegmentFunction& function, const std::vector<Tensor>& inputs,
                                       const std::vector<std::string>& keep_ops = {}, Where where = Where::current());

/// The same for `Tensor function(inputs...)`.
template <class F, class... Tensors>
Tensor checkpoint(F function, const Tensor& first, const Tensors&... rest) {
  return checkpoint_segment(
      [function](std::span<const Tensor> in) {
        return [&]<size_t... I>(std::index_sequence<I...>) { return std::vector<Tensor>{function(in[I]...)}; }
        (std::make_index_sequence<1 + sizeof...(Tensors)>());
      },
      std::vector<Tensor>{first, rest...}, {}, Where())[0];
}

/// How a stack of layers is cut into segments.
struct CheckpointPolicy {
  enum Kind { none, every, sqrt, selective } kind = none;
  int layers = 1;                     ///< of one segment, for `every`
  std::vector<std::string> keep_ops;  ///< for `selective`: one layer a segment, these ops are kept
};
/// "none", "sqrt", "every:N", "selective:op,op"; throws ValueError for anything else.
CheckpointPolicy parse_checkpoint_policy(std::string_view text, Where where = Where::current());

/// x through all layers in order, cut into segments as the policy says.
Tensor run_layers(const std::vector<Callback<Tensor(const Tensor&)>>& layers, Tensor x, const CheckpointPolicy& policy);

}  // namespace cinta::autograd
