// The layers' parameters and calls.
#include "cinta/models/layers.h"

#include "cinta/ops/embedding.h"
#include "cinta/ops/normalize.h"

namespace cinta::models {

Linear::Linear(int64_t in, int64_t out, Init weight_init, Device device) {
  add_parameter(weight, "weight", {out, in}, weight_init, device);
  add_parameter(bias, "bias", {out}, {Init::zeros}, device);
}
Tensor Linear::operator()(const Tensor& x, Activation activation, Where where) const {
  return linear(x, weight, bias, activation, where);
}
Tensor Linear::without_bias(const Tensor& x, Where where) const {
  return linear(x, weight, {}, Activation::none, where);
}

LayerNorm::LayerNorm(int64_t size, double eps, Device device) : eps(eps) {
  add_parameter(weight, "weight", {size}, {Init::ones}, device);
  add_parameter(bias, "bias", {size}, {Init::zeros}, device);
}
Tensor LayerNorm::operator()(const Tensor& x, Where where) const { return layer_norm(x, weight, bias, eps, where); }

Embedding::Embedding(int64_t count, int64_t size, Init init, Device device) {
  add_parameter(weight, "weight", {count, size}, init, device);
}
Tensor Embedding::operator()(const Tensor& index, Where where) const { return embedding(weight, index, -1, where); }

}  // namespace cinta::models
