// The precisions of a run by the names that users know them by, and what is said when a run goes on in another one.
#pragma once
#include <optional>
#include <string_view>

#include "cinta/autograd/autocast.h"
#include "cinta/autograd/narrow_products.h"
#include "cinta/train/callback.h"

namespace cinta::train {

/// fp32: no autocast; bf16, fp16: autocast to them; tf32: products multiply f32 rounded to TF32;
/// "bf16/wide=PATH,low=PATH,promote=PATH": but by these policies in these modules. fp8: bf16, and linear layers
/// multiply 8-bit numbers; "fp8/RECIPE" as parse_product_recipe() reads it. Throws ValueError for any other name.
std::optional<autograd::Autocast> parse_precision(std::string_view name, Where where = Where::current());

/// Throws ValueError for a module with a policy of its own at or below which no op has run in these types so far.
void require_modules_met(const autograd::Autocast& types, Where where = Where::current());

/// Adds what 8-bit formats did to the numbers of training: the shares that were too large for them (fp8_saturated) and
/// that became 0 (fp8_vanished), and the layer and operand where the larger of the two is largest.
void add_counts(MetricFields& fields, const std::vector<autograd::NarrowProducts::LayerCounts>& counts);

/// Keeps the precision of a run with its checkpoints. A run that goes on in another one is told so: what is saved is
/// f32 in all of them and needs no conversion. After a step it requires that all modules are met.
class PrecisionNote final : public TrainerCallback {
 public:
  void on_train_begin(const Moment& now) override;
  void on_step_end(const Moment& now) override;
};

}  // namespace cinta::train
