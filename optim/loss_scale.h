// Loss scaling (Micikevicius et al. 2018): the loss is multiplied before backward, so that small gradients survive in a
// narrow type, and the sweep divides by the same number. A step whose gradients are not finite is skipped; a dynamic
// scale shrinks then, and grows again after many steps that were fine. The device decides, the host waits for nothing.
#pragma once
#include <string>
#include <string_view>

#include "cinta/optim/optimizer.h"

namespace cinta::optim {

struct LossScaleOptions {
  double initial = 1;
  bool dynamic = false;              ///< false: the scale stays
  double growth = 2, backoff = 0.5;  ///< what it is multiplied by
  int64_t interval = 2000;           ///< steps without overflow before it grows
  int64_t hysteresis = 1;            ///< overflows before it shrinks, counted anew when it has grown
  int64_t most_skips = 100;          ///< in a row; as many, seen by check() or report(), stop the run
};

/// "128": static; "dynamic" or "dynamic:initial=65536,interval=2000,...", with the members of LossScaleOptions. Throws
/// ValueError for anything else.
LossScaleOptions parse_loss_scale(std::string_view text, Where where = Where::current());
/// What parse_loss_scale() reads as `options`, every member spelled out.
std::string text_of(const LossScaleOptions& options);

class LossScaler {
 public:
  /// For the gradients of `optimizer`, which outlives this. Throws ValueError for a scale that is not positive and
  /// finite, a growth below 1, a backoff outside (0, 1), counts below 1.
  explicit LossScaler(const Optimizer& optimizer, const LossScaleOptions& options = {}, Where where = Where::current());

  /// `seed` times the scale: what a backward begins with. Throws DtypeError for one that is no floating-point tensor,
  /// DeviceError for one that is elsewhere than the scale.
  Tensor scaled(const Tensor& seed, Where where = Where::current()) const;
  /// f32[1] on the device, for StepOptions::loss_scale.
  const Tensor& scale() const { return scale_; }
  /// Call it after an optimizer's step that was given scale().
  void update();

  struct Report {
    double scale = 1;
    int64_t skipped = 0;     ///< steps since the run began
    std::string skipped_in;  ///< since the last report: "block 2, other block 1", where the gradients were not finite
  };
  /// Waits for the device. Throws ValueError when the last most_skips steps were all skipped.
  void check(Where where = Where::current()) const;
  /// Steps since the run began; waits for the device.
  int64_t skipped() const;
  /// check(), and what it saw.
  Report report(Where where = Where::current());

  /// What a resumed run needs, under names that this class owns.
  std::vector<NamedTensor> state() const;
  static bool owns(std::string_view name);
  /// Takes its part of `state`, which may hold other tensors. A scale that began from other options is not taken over:
  /// only what was counted is. Throws ValueError for a scale that cannot be.
  void load_state(const std::vector<NamedTensor>& state, Where where = Where::current());

 private:
  std::string skipped_in() const;

  const Optimizer& optimizer_;
  LossScaleOptions options_;
  std::vector<std::string> groups_;  ///< names, in the order of `found`
  Tensor scale_, counts_, found_;
};

}  // namespace cinta::optim
