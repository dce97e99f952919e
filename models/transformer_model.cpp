// The configuration is checked before anything is made of it.
#include "cinta/models/transformer_model.h"

namespace cinta::models {

TransformerModel::TransformerModel(const BertConfig& config, uint64_t seed, Device device, Where where)
    : config_((config.check(where), config)), random_(seed, device), seed_(seed) {}

void TransformerModel::to(Device device) {
  Module::to(device);
  random_ = Random(seed_, device);
}

}  // namespace cinta::models
