// Matrix products, accumulated in f32 or wider in an order that does not depend on the number of threads. A backend
// whose instruction for pairs of bf16 reads and writes subnormals as 0 may use it: those of x86 do.
#pragma once
#include "cinta/backends/kernel.h"

namespace cinta::kernels {

/// y[..,M,N] = alpha * a[..,M,K] b[..,K,N] + beta * y; with beta 0 the old y is never read; K = 0 gives beta * y.
/// Leading sizes are equal (stride 0 where an operand repeats); any strides, but one of the last two of each is 1 on
/// the fast path (so a transposed operand costs no copy). y may be of a wider type than a and b.
inline constinit Kernel<void(View y, View a, View b, float alpha, float beta)> matmul{"matmul"};

/// y[M,N] = x[M,K] w[N,K]^T + bias[N], rounded once; bias may be absent, of another type, and have a stride. Contiguous
/// rows.
inline constinit Kernel<void(View y, View x, View w, View bias)> linear{"linear", fused_row};
/// Its gradients by w and bias, in one pass over dy[M,N]: dw[N,K] = dy^T x[M,K] + dw_beta * dw, dbias[N] = column sums
/// of dy + dbias_beta * dbias. With a beta of 0 what was there is never read. Contiguous rows; dw and dbias may be of a
/// wider type than dy and x.
inline constinit Kernel<void(View dw, View dbias, View dy, View x, float dw_beta, float dbias_beta)>
    linear_weight_backward{"linear_weight_backward", fused_row};

enum class Activation { none, relu, gelu, gelu_tanh, silu, tanh };

/// y[M,N] = act(x[M,N]), slope[M,N] = act'(x), which is all that the gradient needs. slope may be absent; y or slope
/// may be x.
inline constinit Kernel<void(View y, View slope, View x, Activation)> activation{"activation", fused_row};
/// dx[M,N] = dy * slope; dbias[N] = column sums of dx + beta * dbias (dbias may be absent). dx may be dy.
inline constinit Kernel<void(View dx, View dbias, View dy, View slope, float beta)> activation_backward{
    "activation_backward", fused_row};

}  // namespace cinta::kernels
