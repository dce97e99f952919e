// What every Transformer with a head holds, whatever its layers are: its configuration and its random state.
#pragma once
#include "cinta/autograd/checkpoint.h"
#include "cinta/models/bert/config.h"
#include "cinta/models/module.h"
#include "cinta/ops/random.h"

namespace cinta::models {

class TransformerModel : public Module {
 public:
  const BertConfig& config() const { return config_; }
  /// Seed, step and first row of dropout.
  Random& random() { return random_; }
  const Random& random() const { return random_; }
  void to(Device device) override;
  /// What the layers keep between forward and backward.
  virtual void set_checkpoint_policy(autograd::CheckpointPolicy policy) = 0;
  /// The name of the class in config.json.
  virtual const char* architecture() const = 0;

 protected:
  /// Throws ValueError for a configuration that is none (BertConfig::check).
  TransformerModel(const BertConfig& config, uint64_t seed, Device device, Where where);

 private:
  BertConfig config_;
  Random random_;
  uint64_t seed_;
};

}  // namespace cinta::models
