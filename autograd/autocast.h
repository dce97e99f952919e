// Autocast: the user's tensors stay f32, and the door of the ops presents them to each op in the type that suits it.
// Micikevicius et al. 2018, "Mixed precision training".
#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cinta/autograd/mode.h"

namespace cinta::autograd {

/// What becomes of an op's inputs of type f32, bf16 or f16 (never f64) while autocast is on.
enum class CastPolicy {
  low,      ///< all in the low type: products, whose sums are f32 inside
  follow,   ///< as they are, and the result as the widest: norms, the residuals between them, gathers of rows
  wide,     ///< all in f32: what has a large range or adds up in its own type
  promote,  ///< where they differ, all in f32
  none,     ///< as they are: changes of layout, the casts themselves
};

/// The policy of the op called `op`; autocast.cpp has the table. An op that is not in it promotes.
CastPolicy cast_policy(std::string_view op);

class NarrowProducts;

/// A module's own policy: that of every op that runs below its path, but for those of policy none.
struct ModulePolicy {
  std::string path;
  CastPolicy policy = CastPolicy::wide;
};

/// The types of a scope.
struct Autocast {
  Dtype low = Dtype::bf16;                          ///< bf16 or f16; f32 with tf32
  bool tf32 = false;                                ///< products multiply f32 rounded to TF32 (ops/tf32.h)
  std::vector<ModulePolicy> modules = {};           ///< the first that fits counts
  std::shared_ptr<std::set<std::string>> met = {};  ///< where given, gets the paths of modules that an op ran below
  std::shared_ptr<NarrowProducts> products = {};    ///< what linear layers multiply in, where that is narrower still
};

/// While alive, ops on this thread run under `options`; without options as if there were no scope around. A segment
/// that is run again runs as it did first, gradient rules run as their tensors come. Throws DtypeError for a low type
/// other than bf16 and f16, and f32 with TF32.
class AutocastScope : Scoped<std::shared_ptr<const Autocast>> {
 public:
  explicit AutocastScope(std::optional<Autocast> options, Where where = Where::current());
};

/// The products that a linear layer of these inputs multiplies by here and now, or null.
std::shared_ptr<NarrowProducts> narrow_products(std::span<const Tensor* const> inputs);

/// Whether products multiply TF32 numbers here and now.
bool multiplies_tf32();

/// True iff the door could present one of these types as the other, so that an op need not refuse the pair.
bool reconciled(Dtype one, Dtype other);

/// The type in which the inputs of `op` are to be presented; none where they stay as they are. Autocast is on.
std::optional<Dtype> presented_type(const char* op, std::span<const Tensor* const> inputs);

/// Memory for a copy of `y`, f32 and just made by `op`, in the low type: for a row that writes both, so that the ops of
/// policy low that will read y need no pass for a copy. Absent where no such op will be shown y in another type.
Tensor shadow_to_write(const char* op, const Tensor& y);
/// Memory for a copy of `y`, just made by `op`, in a narrower type, to be written with it and found by current_shadow.
Tensor new_shadow(const char* op, const Tensor& y, Dtype dtype, Shadow::Of of);
/// The copy of `x`, which may be a part of its storage, that this keeps in `dtype`; absent where it is out of date.
Tensor current_shadow(const Tensor& x, Dtype dtype);
/// Makes a shadow of `y`, which `op` just made by moving numbers of `x`, from that of `x` in the low type, by the same
/// moves, `run`; where x has one and products may read y.
void carry_shadow(const char* op, const Tensor& y, const Tensor& x,
                  const Callback<void(const Tensor& to, const Tensor& from)>& run);
/// Gives up the copy that was made with a result; it can be made again.
void drop_shadow(const Tensor& result);

/// `x` in f32 where autocast is on: for what is written with other ops, and wide as a whole.
Tensor widened(const char* op, const Tensor& x);

/// `x` in `dtype`, if it is of a type that autocast changes, for `op`; a keeper hears of one that is. A leaf that fills
/// its storage, and a tensor whose shadow was written with it, are presented by the shadow of that storage, a part of
/// what has a shadow by a copy of that part, anything else by a cast; each with its own seat: its gradient arrives in
/// its own type. A shadow follows what ops and optimizers write, not what is written through Tensor::data(). Threads
/// that share weights share their shadows, which the first use after a write makes without a lock.
Tensor presented(const char* op, const Tensor& x, Dtype dtype);

}  // namespace cinta::autograd
