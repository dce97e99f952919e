// What a training step costs, layer by layer. On the meta device it is planned: nothing is computed, no memory is
// taken.
#pragma once
#include <string>
#include <vector>

#include "cinta/core/callback.h"
#include "cinta/core/memory.h"
#include "cinta/models/module.h"
#include "cinta/optim/optimizer.h"

namespace cinta::train {

/// The cost of the ops that run in one part of the model.
struct LayerCost {
  std::string name;  ///< e.g. "bert.encoder.layer.0"; empty for what runs in none, as the loss does
  int64_t parameters = 0;
  int64_t kept_bytes = 0;  ///< of activations saved for backward; those a checkpoint or an offload took left out
  double forward_flops = 0, backward_flops = 0;  ///< of matrix products and attention alone
};

struct StepCost {
  std::vector<LayerCost> layers;  ///< in the order in which they first run
  MemoryStatistics memory;        ///< of the model's device at the end; peaks are those of the step
};

/// Runs two steps (the loss, its gradients, an update) and tells of the second. The statistics of the model's device
/// start anew at its beginning.
StepCost step_cost(const models::Module& model, const Callback<Tensor()>& loss, optim::Optimizer& optimizer);

}  // namespace cinta::train
