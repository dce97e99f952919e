// env.json: in what surroundings a run was made, for whoever wants to have it again. The header of metrics.jsonl holds
// what decides the numbers, and must be the same when a run is resumed; this may change on the way.
#pragma once
#include "cinta/train/callback.h"

namespace cinta::train {

/// Writes env.json into the run's directory: a list with one object for each process that worked on the run, the first
/// in front: when and after which step it began, the machine, the compiler, CINTA_ISA where that is set, and `known`:
/// what the program says of itself.
class EnvironmentFile final : public TrainerCallback {
 public:
  explicit EnvironmentFile(MetricFields known) : known_(std::move(known)) {}
  void on_train_begin(const Moment& now) override;

 private:
  MetricFields known_;
};

}  // namespace cinta::train
