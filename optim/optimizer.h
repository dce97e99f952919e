// Optimizer: what all update rules share: units, the numbers of a step, clipping, state by name. A rule itself is one
// sweep over a flat group (adamw.h, sgd.h).
#pragma once
#include <optional>
#include <utility>

#include "cinta/backends/kernels/optimizer.h"
#include "cinta/optim/clip.h"

namespace cinta::optim {

using NamedTensor = std::pair<std::string, Tensor>;

struct StepOptions {
  double rate_factor = 1;               ///< what the schedule says for this step; prepare() takes it for update()
  std::optional<double> max_norm = {};  ///< clip the global gradient norm to it; 0: measure only; none: not even that
  Tensor loss_scale = {};               ///< f32[1] on the device: the gradients are of the loss times it (loss_scale.h)
};

/// The set of trained parameters is fixed when the optimizer is made: freezing or unfreezing one asks for a new one.
/// Parameters of f64 are updated in f64, but by numbers that are f32 as for all others: the rate and its factors, what
/// clipping and loss scale multiply gradients by, AdamW's bias corrections, and in a fused sweep the weight decay.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates every trained parameter from its gradient; one that has no gradient counts as having gradient zero.
  /// Returns the gradient norm before clipping, f32[1], valid until the next step, or no tensor when it was not asked
  /// for. With a norm that is not finite the step is skipped: no weight and no state changes, bias corrections too stay
  /// where they are; the schedule alone goes on, so that the host need not know. Gradients are left as they are.
  Tensor step(const StepOptions& options = {}, Where where = Where::current());
  /// The two halves of step(), for one that is captured (backends/captured_step.h). prepare(), before each replay: the
  /// step counts, its rate goes to the device, and shadows follow what was written into weights meanwhile. update(), in
  /// what is captured: the rest, with rows alone. Throws ValueError without a prepare() of its own, a replay before any
  /// of its rows has run.
  void prepare(double rate_factor = 1, Where where = Where::current());
  Tensor update(const StepOptions& options = {}, Where where = Where::current());
  /// From now on the sweeps also write the f32 weights in `dtype` (bf16 or f16), where autocast finds them: no step
  /// casts a weight then.
  void keep_shadows(Dtype dtype, Where where = Where::current());
  /// Forgets all gradients. Call it once per step, before the first backward.
  void zero_gradients();
  /// Steps taken, skipped ones among them; the next step uses schedule(steps()).
  int64_t steps() const { return steps_; }
  /// The base rate, which a step's rate factor and a parameter's own multiply.
  double rate() const { return rule_.rate; }
  const std::vector<Unit>& units() const { return units_; }
  /// f32[1] on the device: what the last step's gradients were multiplied by; 0: it was skipped. Of no meaning
  /// before the first step.
  Tensor gradient_factor() const { return scalars_.with_layout({1}, {1}, kernels::sweep_gradient_factor); }
  /// The sum of squares of each trained group's gradients, f64, as the last step that measured a norm found them.
  const Tensor& squares() const { return norm_->squares(); }

  /// All that a resumed run needs beside the weights: "step" (i64, no dimensions), "updates" (i64[1], the steps that
  /// were not skipped) and "<parameter>.<state>" in the parameter's shape. The step is a copy, all else slices of the
  /// live buffers: written down before the next step they are one state, kept beyond it they are not.
  std::vector<NamedTensor> state() const;
  /// Takes state() of an optimizer of the same kind back, from any device. Throws ValueError naming a tensor that is
  /// missing, unknown or given twice, ShapeError or DtypeError for one of another form; nothing has changed then.
  void load_state(const std::vector<NamedTensor>& state, Where where = Where::current());

 protected:
  struct Rule {
    const char* name;
    double rate, weight_decay;
    std::vector<std::string> states;  ///< names of what is kept for each weight, as PyTorch's state_dict calls them
    double beta1 = 0, beta2 = 0;      ///< of the means that begin at 0 and are corrected for it
  };
  Optimizer(std::vector<Parameter> parameters, Rule rule, Where where);
  /// Updates one trained group, with the numbers in `scalars` (kernels::SweepScalar).
  virtual void sweep(const Group& group, const kernels::Segments& segments, const Tensor& scalars) = 0;
  double weight_decay() const { return rule_.weight_decay; }

 private:
  struct SegmentTable {
    Tensor ends, rate_factors, decays;
  };
  SegmentTable make_table(const Group& group) const;
  void collect_gradients(Where where);
  double checked_rate(double rate_factor, Where where) const;
  void begin_step(double rate);
  void require_preparation(Where where) const;
  Tensor run_rows(const StepOptions& options);
  void mark_written();
  std::vector<NamedTensor> slices() const;

  Rule rule_;
  std::vector<Unit> units_;
  std::vector<SegmentTable> tables_;  // one for each trained group, in the order of the units
  Tensor scalars_, updates_;
  std::optional<GlobalNorm> norm_;
  int64_t steps_ = 0;
  bool prepared_ = false;
};

}  // namespace cinta::optim
