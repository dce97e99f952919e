// Contracts of the norms and of dropout.
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/backends/kernels/normalize.h"
#include "cinta/ops/shape.h"
#include "contract/contract.h"
#include "contract/dropout.h"

using namespace cinta;
using namespace cinta::contract;

namespace {

const Shape shapes[] = {{0, 3}, {1, 1}, {3, 1}, {5, 7}, {7, 17}, {3, 63}, {3, 257}, {2, 1000}, {70, 33}};
constexpr float eps = 1e-5f;

/// Rows with a mean far larger than their deviation: E[x^2] - E[x]^2 would lose everything.
Values offset_rows(const Shape& shape) { return uniform(shape, 40, 41, 2); }

struct Statistics {
  Values mean, rstd;
};
Statistics statistics(const Values& x, const Shape& shape, bool around_zero = false) {
  Statistics out;
  for (int64_t r = 0; r < shape[0]; ++r) {
    double mean = 0, squares = 0;
    for (int64_t j = 0; j < shape[1] && !around_zero; ++j) mean += x[r * shape[1] + j] / static_cast<double>(shape[1]);
    for (int64_t j = 0; j < shape[1]; ++j) squares += std::pow(x[r * shape[1] + j] - mean, 2);
    out.mean.push_back(mean);
    out.rstd.push_back(1 / std::sqrt(squares / static_cast<double>(shape[1]) + eps));
  }
  return out;
}

/// A parameter of the last dimension, or an absent one.
Handle parameter(Trial& trial, bool present, const Shape& shape, Dtype dtype, uint64_t seed) {
  return present ? trial.input({shape[1]}, dtype, uniform(shape[1], -2, 2, seed)) : Handle{};
}
/// The gradient of x, which is added to what is there where beta is not 0, and a copy of an f32 one.
struct RowGradients {
  Handle dx, low;
};
RowGradients row_gradients(Trial& trial, const Shape& shape, Dtype dtype, Layout layout, float beta, Dtype low) {
  return {beta == 0 ? trial.output(shape, dtype, layout) : trial.both(shape, dtype, uniform(shape, -2, 2, 9), layout),
          dtype == Dtype::f32 ? trial.output(shape, low, layout) : Handle{}};
}
/// The gradient of one: f32, beside what is there already when beta is not 0.
Handle gradient(Trial& trial, bool present, const Shape& shape, float beta) {
  if (!present) return {};
  return beta == 0 ? trial.output({shape[1]}, Dtype::f32)
                   : trial.both({shape[1]}, Dtype::f32, uniform(shape[1], -2, 2, 8));
}

void try_layer_norm(const Shape& shape, Dtype dtype, Layout layout, const Values& values, bool gain_there,
                    bool bias_there) {
  Trial trial(kernels::layer_norm, join(dtype, shape, gain_there ? " gain" : "", bias_there ? " bias" : ""));
  trial.accuracy.length = shape[1];
  const Handle x = trial.input(shape, dtype, values, layout), y = trial.output(shape, dtype, layout);
  const Handle mean = trial.output({shape[0]}, Dtype::f32), rstd = trial.output({shape[0]}, Dtype::f32);
  const Handle gain = parameter(trial, gain_there, shape, dtype, 3),
               bias = parameter(trial, bias_there, shape, dtype, 4);
  const Handle y_too = gain_there && dtype == Dtype::f32 ? trial.output(shape, Dtype::bf16, layout) : Handle{};
  const Handle normal = bias_there ? trial.output(shape, Dtype::bf16, layout) : Handle{};
  trial.run([&](const Call& c) {
    kernels::layer_norm(c.device, c(y), c(y_too), c(normal), c(mean), c(rstd), c(x), c(gain), c(bias), eps);
  });
}

void try_layer_norm_backward(const Shape& shape, Dtype dtype, Layout layout, bool all, float beta, bool from_normal) {
  Trial trial(kernels::layer_norm_backward,
              join(dtype, shape, all ? "" : " few operands", " beta ", beta, from_normal ? " from normal" : ""));
  trial.accuracy.length = std::max(shape[0], shape[1]);
  const Values values = uniform(shape, -3, 5);
  const Statistics found = statistics(values, shape);
  const Handle normal = from_normal ? trial.input(shape, Dtype::bf16, uniform(shape, -2, 2), layout) : Handle{};
  const Handle x = from_normal ? Handle{} : trial.input(shape, dtype, values, layout),
               dy = trial.input(shape, dtype, uniform(shape, -2, 2, 7), layout);
  const Handle mean = from_normal ? Handle{} : trial.input({shape[0]}, Dtype::f32, found.mean),
               rstd = trial.input({shape[0]}, Dtype::f32, found.rstd);
  const Handle gain = parameter(trial, all, shape, dtype, 3);
  const Handle dgain = gradient(trial, all, shape, beta), dbias = gradient(trial, true, shape, beta);
  const RowGradients dx =
      all || beta == 0 ? row_gradients(trial, shape, dtype, layout, beta, Dtype::bf16) : RowGradients{};
  trial.run([&](const Call& c) {
    kernels::layer_norm_backward(c.device, c(dx.dx), c(dx.low), c(dgain), c(dbias), c(dy), c(normal), c(x), c(mean),
                                 c(rstd), c(gain), beta, beta, beta);
  });
}

void layer_norm_contract() {
  for (Dtype dtype : trained_types)
    for (const Shape& shape : shapes)
      for (Layout layout : contiguous_layouts) {
        for (bool gain : {false, true})
          for (bool bias : {false, true}) try_layer_norm(shape, dtype, layout, uniform(shape, -3, 5), gain, bias);
        try_layer_norm(shape, dtype, layout, offset_rows(shape), true, true);
        for (bool all : {false, true})
          for (float beta : {0.0f, 1.0f})
            for (bool from_normal : {false, true})
              try_layer_norm_backward(shape, dtype, layout, all, beta, from_normal);
      }
  Values with_nan = uniform(99, -3, 3);
  with_nan[40] = NAN;
  try_layer_norm({3, 33}, Dtype::f32, Layout::dense, with_nan, true, true);
}

void try_rms_norm(const Shape& shape, Dtype dtype, Layout layout, bool gain_there) {
  Trial trial(kernels::rms_norm, join(dtype, shape, gain_there ? " gain" : ""));
  trial.accuracy.length = shape[1];
  const Handle x = trial.input(shape, dtype, uniform(shape, -3, 5), layout), y = trial.output(shape, dtype, layout);
  const Handle rstd = trial.output({shape[0]}, Dtype::f32), gain = parameter(trial, gain_there, shape, dtype, 3);
  const Handle y_too = gain_there && dtype == Dtype::f32 ? trial.output(shape, Dtype::f16, layout) : Handle{};
  const Handle normal = gain_there ? trial.output(shape, Dtype::f16, layout) : Handle{};
  trial.run(
      [&](const Call& c) { kernels::rms_norm(c.device, c(y), c(y_too), c(normal), c(rstd), c(x), c(gain), eps); });
}

void try_rms_norm_backward(const Shape& shape, Dtype dtype, Layout layout, bool all, float beta, bool from_normal) {
  Trial trial(kernels::rms_norm_backward,
              join(dtype, shape, all ? "" : " few operands", " beta ", beta, from_normal ? " from normal" : ""));
  trial.accuracy.length = std::max(shape[0], shape[1]);
  const Values values = uniform(shape, -3, 5);
  const Handle normal = from_normal ? trial.input(shape, Dtype::f16, uniform(shape, -2, 2), layout) : Handle{};
  const Handle x = from_normal ? Handle{} : trial.input(shape, dtype, values, layout),
               dy = trial.input(shape, dtype, uniform(shape, -2, 2, 7), layout);
  const Handle rstd = trial.input({shape[0]}, Dtype::f32, statistics(values, shape, true).rstd);
  const Handle gain = parameter(trial, all, shape, dtype, 3), dgain = gradient(trial, all, shape, beta);
  const RowGradients dx = row_gradients(trial, shape, dtype, layout, beta, Dtype::f16);
  trial.run([&](const Call& c) {
    kernels::rms_norm_backward(c.device, c(dx.dx), c(dx.low), c(dgain), c(dy), c(normal), c(x), c(rstd), c(gain), beta,
                               beta);
  });
}

void rms_norm_contract() {
  for (Dtype dtype : trained_types)
    for (const Shape& shape : shapes)
      for (Layout layout : contiguous_layouts)
        for (bool all : {false, true}) {
          try_rms_norm(shape, dtype, layout, all);
          for (float beta : {0.0f, 1.0f})
            for (bool from_normal : {false, true}) try_rms_norm_backward(shape, dtype, layout, all, beta, from_normal);
        }
}

/// `type`: of the residual, the parameters and y, of which there is a copy in `dtype` where they differ.
void try_residual_norm(const Shape& shape, Dtype dtype, Dtype type, float p, bool x_bias_there, bool some_rows) {
  Trial trial(kernels::residual_norm,
              join(dtype, " ", type, shape, " p ", p, x_bias_there ? " x_bias" : "", some_rows ? " of some rows" : ""));
  trial.accuracy.length = shape[1];
  const Handle x = trial.input(shape, dtype, uniform(shape, -3, 3)),
               x_bias = parameter(trial, x_bias_there, shape, type, 5);
  const Handle residual = trial.input(shape, type, uniform(shape, -2, 3, 6));
  const Handle gain = parameter(trial, true, shape, type, 3), bias = parameter(trial, true, shape, type, 4);
  const Handle y = trial.output(shape, type), normal = trial.output(shape, dtype);
  const Handle y_too = type != dtype ? trial.output(shape, dtype) : Handle{};
  const Handle mean = trial.output({shape[0]}, Dtype::f32), rstd = trial.output({shape[0]}, Dtype::f32);
  const DropoutSite dropout(trial, p, some_rows ? shape[0] : 0);
  trial.run([&](const Call& c) {
    kernels::residual_norm(c.device, c(y), c(y_too), c(normal), c(mean), c(rstd), c(x), c(x_bias), c(residual), c(gain),
                           c(bias), eps, dropout(c));
  });
}

void try_residual_norm_backward(const Shape& shape, Dtype dtype, Dtype type, float p, bool x_bias_there, bool dx_there,
                                float beta, bool some_rows, bool in_place) {
  Trial trial(kernels::residual_norm_backward,
              join(dtype, " ", type, shape, " p ", p, dx_there ? "" : " no dx", " beta ", beta,
                   some_rows ? " of some rows" : "", in_place ? " in place" : ""));
  trial.accuracy.length = std::max(shape[0], shape[1]);
  const Values gradients = uniform(shape, -2, 2, 7);
  const Handle normal = trial.input(shape, dtype, uniform(shape, -2, 2)),
               dy = in_place ? trial.both(shape, type, gradients) : trial.input(shape, type, gradients);
  const Handle rstd = trial.input({shape[0]}, Dtype::f32, uniform(shape[0], 0.1, 2, 8));
  const Handle gain = parameter(trial, true, shape, type, 3);
  const Handle dx = dx_there ? trial.output(shape, dtype) : Handle{},
               dresidual = in_place ? dy : trial.output(shape, type);
  const Handle dx_bias = gradient(trial, x_bias_there, shape, beta);
  const Handle dgain = gradient(trial, true, shape, beta), dbias = gradient(trial, true, shape, beta);
  const DropoutSite dropout(trial, p, some_rows ? shape[0] : 0);
  trial.run([&](const Call& c) {
    kernels::residual_norm_backward(c.device, c(dx), c(dresidual), c(dx_bias), c(dgain), c(dbias), c(dy), c(normal),
                                    c(rstd), c(gain), dropout(c), beta, beta, beta);
  });
}

void residual_norm_contract() {
  for (Dtype dtype : trained_types)
    for (const Shape& shape : shapes)
      for (float p : {0.0f, 0.1f, 0.7f})
        for (bool x_bias : {false, true}) {
          for (Dtype type : {dtype, Dtype::f32})
            for (bool some_rows : {false, p > 0}) {
              try_residual_norm(shape, dtype, type, p, x_bias, some_rows);
              for (float beta : {0.0f, 1.0f})
                for (bool in_place : {false, true})
                  try_residual_norm_backward(shape, dtype, type, p, x_bias, true, beta, some_rows, in_place);
            }
          for (bool in_place : {false, true})
            if (p == 0) try_residual_norm_backward(shape, dtype, dtype, p, x_bias, false, 0, false, in_place);
        }
}

void dropout_contract() {
  for (Dtype dtype : trained_types)
    for (const Shape& shape : {Shape{0}, Shape{1}, Shape{3}, Shape{1000}, Shape{3, 7}, Shape{5, 63}, Shape{2, 3, 257}})
      for (float p : {0.0f, 0.1f, 0.5f, 0.999f})
        for (Layout layout : {Layout::dense, Layout::shifted, Layout::padded})
          for (bool in_place : {false, true}) {
            Trial trial(kernels::dropout,
                        join(dtype, shape, " p ", p, " layout ", int(layout), in_place ? " in place" : ""));
            const Values values = uniform(shape, 1, 3);
            const Handle x =
                in_place ? trial.both(shape, dtype, values, layout) : trial.input(shape, dtype, values, layout);
            const Handle y = in_place ? x : trial.output(shape, dtype, layout);
            const bool copied = !in_place && dtype == Dtype::f32;
            const Handle y_too = copied ? trial.output(shape, Dtype::bf16) : Handle{};
            const DropoutSite site(trial, p, in_place ? leading_rows(shape) : 0);
            trial.run([&](const Call& c) { kernels::dropout(c.device, c(y), c(y_too), c(x), site(c)); });
          }
}

const Contract layer_norm_here{{&kernels::layer_norm, &kernels::layer_norm_backward}, layer_norm_contract};
const Contract rms_norm_here{{&kernels::rms_norm, &kernels::rms_norm_backward}, rms_norm_contract};
const Contract residual_norm_here{{&kernels::residual_norm, &kernels::residual_norm_backward}, residual_norm_contract};
const Contract dropout_here{{&kernels::dropout}, dropout_contract};

}  // namespace

TEST_CASE("contracts of the norms and of dropout", "[kernel_contract]") { check_contracts(); }
