// Unit: the parameters of one block in flat buffers. The models' tensors and the tape's gradients are slices of them,
// so one sweep updates a block, and one message can carry it.
#pragma once
#include <vector>

#include "cinta/optim/flat_gradients.h"
#include "cinta/optim/parameter.h"

namespace cinta::optim {

/// Parameters begin at multiples of this many elements, and buffers end at one: any number of ranks that divides it
/// cuts a buffer into equal parts, and the layout is the same for all of them. The gaps hold zeros and are in no file.
inline constexpr int64_t alignment = 64;

/// One parameter's place in a flat buffer.
struct Range {
  Parameter parameter;
  int64_t begin;                              ///< in elements
  std::shared_ptr<Storage> shadow = nullptr;  ///< its slice of the flat shadow
};

/// The parameters of a unit that have one dtype and are all trained or all frozen.
struct Group {
  bool trained;
  std::vector<Range> ranges;
  Tensor weights;                            ///< flat
  std::shared_ptr<FlatGradients> gradients;  ///< of the weights' type; null when frozen
  Tensor shadow;                             ///< flat, the weights in a narrower type; no tensor unless asked for
  std::vector<Tensor> state;                 ///< flat, of the weights' type: what the optimizer keeps for each weight

  int64_t length() const { return weights.numel(); }
  /// The part of a flat buffer of this group that belongs to `range`, in the parameter's shape.
  static Tensor slice(const Tensor& flat, const Range& range);
};

class Unit {
 public:
  /// Moves `parameters` into flat buffers of their device: values (and gradients there are already) are kept, and every
  /// handle of them follows. make_units() has checked them.
  explicit Unit(std::vector<Parameter> parameters);

  std::vector<Group>& groups() { return groups_; }
  const std::vector<Group>& groups() const { return groups_; }

  /// Makes the flat gradients whole before a sweep: zero where a parameter has none, copied where the tape has put a
  /// tensor of its own. Throws ValueError when a parameter was moved into another optimizer's units meanwhile.
  void collect_gradients(Where where);
  /// Forgets the gradients and gives their memory back, unless a captured step writes or reads it.
  void zero_gradients();
  /// Adds zeroed flat state to every trained group.
  void add_state(size_t count);
  /// Makes shadows of all f32 weights, which are the storages' own from now on.
  void add_shadows(Dtype dtype);
  /// Brings shadows up to date with weights that were written since the last sweep.
  void renew_shadows();
  /// Tells the tape that the trained weights were overwritten by `writer`.
  void mark_written(const char* writer);

 private:
  std::vector<Group> groups_;
};

/// The first trained parameter that holds NaN or infinity; null where every weight is a number.
const Range* first_not_finite(const std::vector<Unit>& units);

/// One unit for each block, in order of first appearance; a storage that appears again is a tied weight and is left
/// where it first stood. Throws ValueError for an empty list, duplicate names, tensors that are results of ops, that
/// share a storage in part or share it without sharing their seat on the tape; DtypeError for a trained parameter that
/// is not f32 or f64; DeviceError when they are on different devices. Nothing is moved when it throws.
std::vector<Unit> make_units(std::vector<Parameter> parameters, Where where = Where::current());

}  // namespace cinta::optim
