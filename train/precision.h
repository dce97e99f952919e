// The precisions of a run by the names that users know them by, and what is said when a run goes on in another one.
#pragma once
#include <optional>
#include <string_view>

#include "cinta/autograd/autocast.h"
#include "cinta/train/callback.h"

namespace cinta::train {

/// fp32: no autocast; bf16, fp16: autocast to them. Throws ValueError for any other name.
std::optional<autograd::Autocast> parse_precision(std::string_view name, Where where = Where::current());

/// Keeps the type that ops compute in with the run's checkpoints. A run that goes on in another type is told so: what is
/// saved is f32 in all of them and needs no conversion.
class PrecisionNote final : public TrainerCallback {
 public:
  void on_train_begin(const Moment& now) override;
};

}  // namespace cinta::train
