// Layers: parameters with the function that uses them.
#pragma once
#include "cinta/models/module.h"
#include "cinta/ops/matmul.h"

namespace cinta::models {

/// activation(x w^T + b) with weight[out, in].
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, Init weight_init, Device device = cpu);
  Tensor operator()(const Tensor& x, Activation activation = Activation::none, Where where = Where::current()) const;
  /// x w^T alone, for a caller that adds the bias itself.
  Tensor without_bias(const Tensor& x, Where where = Where::current()) const;
  Tensor weight, bias;
};

class LayerNorm : public Module {
 public:
  LayerNorm(int64_t size, double eps, Device device = cpu);
  Tensor operator()(const Tensor& x, Where where = Where::current()) const;
  Tensor weight, bias;
  double eps;
};

class Embedding : public Module {
 public:
  Embedding(int64_t count, int64_t size, Init init, Device device = cpu);
  Tensor operator()(const Tensor& index, Where where = Where::current()) const;
  Tensor weight;
};

}  // namespace cinta::models
