// The matrix product rows: a call becomes plain two-dimensional products, each done by what is fastest for it.
#include "cinta/backends/kernels/matmul.h"

#include <algorithm>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/cpu/halves.h"
#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/cpu/onednn.h"
#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/reduce.h"
#include "cinta/core/context.h"
#include "cinta/core/tensor.h"

namespace cinta {
namespace {

Matrix matrix(const View& view) {
  if (!view) return {};
  return {view.data, view.rank() > 1 ? view.stride(-2) : 0, view.stride(-1), view.dtype};
}

/// y = beta * y, in place of a product over nothing.
void scale(const View& y, float beta) {
  if (beta == 0) return kernels::fill(cpu, y, 0);
  kernels::affine.forward(cpu, y, y, {beta, 0});
}

void multiply(Gemm p);

/// Pairs of bf16 are multiplied at once, and of an infinity that is the last of an odd number oneDNN makes NaN.
bool is_odd(const Gemm& p) {
  const auto fits = [](const Matrix& m) { return m.dtype == Dtype::bf16 || m.dtype == Dtype::f32; };
  return p.a.dtype == Dtype::bf16 && p.b.dtype == Dtype::bf16 && p.k % 2 && p.alpha == 1 && fits(p.y) && fits(p.bias);
}

/// Such a product: all steps but the last, in f32, and then that one.
void multiply_odd(const Gemm& p) {
  const WorkspaceBlock room((p.m + 1) * p.n * size_of(Dtype::f32));
  float* const sums = static_cast<float*>(room.data());
  float* const last = sums + p.m * p.n;
  const auto read = [](const Matrix& m, int64_t i, int64_t j) {
    const void* at = m.at(i, j);
    return m.dtype == Dtype::f32 ? *static_cast<const float*>(at) : static_cast<float>(*static_cast<const bf16*>(at));
  };
  std::fill_n(sums, p.k == 1 ? p.m * p.n : 0, 0.0f);
  Gemm even = p;
  even.k = p.k - 1;
  even.y = {sums, p.n, 1, Dtype::f32};
  even.bias = {}, even.beta = 0;
  if (even.k > 0) multiply(even);
  for (int64_t j = 0; j < p.n; ++j) last[j] = read(p.b, p.k - 1, j);
  parallel_for(p.m, rows_of_tile(p.n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float factor = read(p.a, i, p.k - 1);
      for (int64_t j = 0; j < p.n; ++j) {
        float sum = sums[i * p.n + j] + factor * last[j];
        if (p.bias.data) sum += read(p.bias, i, j);
        if (p.beta != 0) sum += p.beta * read(p.y, i, j);
        if (p.y.dtype == Dtype::f32)
          *static_cast<float*>(p.y.at(i, j)) = sum;
        else
          *static_cast<bf16*>(p.y.at(i, j)) = bf16(sum);
      }
    }
  });
}

/// Long sums for few results, as in the gradient of what a head over many classes reads: cut into parts, of which each
/// packs its rows of b once and finds them in the cache. Measured on Zen 4, bf16[320,30522] x bf16[30522,256]: 163
/// GF/s as one sum, 220 in parts of 2048; f32 101 and 110. As many parts as two, four or eight threads share evenly:
/// by two threads 386 GF/s in 15 parts, 408 in 16. Of few results, parts of 1024 take of the time of 2048 on an
/// Emerald Rapids by AMX, in wider stripes, 0.91 to 0.96, by AVX-512 0.98 to 1.00. Of more than 16 parts, two or
/// more that follow each other are added up where they are, so that half as many sums are written and read again, at
/// most 64: 0.965 to 0.975 of the time on Zen 4.
bool multiply_parts(const Gemm& p) {
  constexpr int64_t least = 8192, few = 1 << 18, evenly = 8, most_single = 16, most_sums = 64, most = 1024;
  const bool fits = p.k >= least && p.m <= most && p.n <= most && p.a.column == 1 && p.b.column == 1;
  if (!fits || p.bias.data || p.alpha != 1 || p.of_many) return false;  // in a batch, each thread does a whole
  const int64_t longest = p.m * p.n <= few ? 1024 : 2048;               // as each sum has results of its own
  const int64_t needed = p.k / longest + 1,
                of_sum = needed > most_single ? std::max<int64_t>(2, (needed + most_sums - 1) / most_sums) : 1,
                sums = round_up((needed + of_sum - 1) / of_sum, evenly), count = sums * of_sum;
  // About equal, the first the longest, so that it takes as much workspace as any.
  const auto begin_of = [&](int64_t i) { return std::min(p.k, round_up((i * p.k + count - 1) / count, 32)); };
  const CategoryScope scope(Category::workspace);
  const Tensor results = empty({sums, p.m, p.n});
  float* y = results.view().as<float>();
  parallel_for(sums, 1, [&](int64_t sum, int64_t) {
    for (int64_t i = sum * of_sum; i < (sum + 1) * of_sum; ++i) {
      Gemm part = p;
      part.k = begin_of(i + 1) - begin_of(i);
      part.a.data = p.a.at(0, begin_of(i));
      part.b.data = p.b.at(begin_of(i), 0);
      part.y = {y + sum * p.m * p.n, p.n, 1, Dtype::f32};
      part.beta = i > sum * of_sum ? 1 : 0;
      part.of_many = true;
      if (fast_gemm(part)) continue;
      if (is_odd(part))
        multiply_odd(part);
      else if (!onednn::multiply_whole(part))
        gemm(part);
    }
  });
  kernels::sum(cpu, View{p.y.data, {1, p.m, p.n}, {0, p.y.row, p.y.column}, p.y.dtype, true}, results, p.beta);
  return true;
}

/// A weight's gradient over many samples, by oneDNN.
bool multiply_halves(const Gemm& p) {
  const bool fits = p.a.row == 1 && p.a.column != 1 && is_halved(p) && p.y.dtype == Dtype::f32 && p.y.column == 1;
  if (!fits || p.bias.data || p.alpha != 1) return false;
  const Halves halves(p);
  if (!onednn::multiply(halves.first, &halves.second)) return false;
  halves.add_up();
  return true;
}

/// One product whose sizes are all positive.
void multiply(Gemm p) {
  // A result that lies by columns is the transposed product by rows.
  if (p.y.column != 1 && p.y.row == 1) p = p.transposed();
  // A stride along a dimension of size 1 says nothing; give it the value that a dense matrix has.
  if (p.m == 1 && p.a.column == 1) p.a.row = p.k;
  if (p.k == 1 && p.a.row == 1) p.a.column = p.m;
  if (p.k == 1 && p.b.column == 1) p.b.row = p.n;
  if (p.n == 1 && p.b.row == 1) p.b.column = p.k;
  if (p.m == 1) p.y.row = std::max(p.y.row, p.n);
  if (multiply_parts(p)) return;
  if (!multiplies(p.a.dtype)) return gemm(p);  // oneDNN would be slower, or has none
  if (fast_gemm(p)) return;
  if (is_odd(p)) return multiply_odd(p);
  if (!multiply_halves(p) && !onednn::multiply(p)) gemm(p);
}

/// The leading dimensions of a product, those that all operands step through evenly joined into one.
struct Batch {
  Batch(const View& y, const View& a, const View& b) {
    const View* views[] = {&y, &a, &b};
    for (int dim = 0; dim < y.rank() - 2; ++dim) {
      if (y.shape[dim] == 1) continue;
      bool joins = sizes.rank() > 0;
      for (int v = 0; joins && v < 3; ++v) joins = strides[v].back() == views[v]->strides[dim] * y.shape[dim];
      if (joins)
        sizes[sizes.rank() - 1] *= y.shape[dim];
      else
        sizes.push_back(y.shape[dim]);
      for (int v = 0; v < 3; ++v) {
        if (!joins) strides[v].push_back(0);
        strides[v][sizes.rank() - 1] = views[v]->strides[dim];
      }
    }
  }
  /// `product` moved to the matrices of batch number `index`.
  Gemm at(Gemm product, int64_t index) const {
    Matrix* matrices[] = {&product.y, &product.a, &product.b};
    for (int dim = sizes.rank() - 1; dim >= 0; --dim) {
      const int64_t i = index % sizes[dim];
      index /= sizes[dim];
      for (int v = 0; v < 3; ++v)
        matrices[v]->data = static_cast<char*>(matrices[v]->data) + i * strides[v][dim] * size_of(matrices[v]->dtype);
    }
    return product;
  }
  Shape sizes, strides[3];  // of y, a, b
};

void matmul(View y, View a, View b, float alpha, float beta) {
  if (y.numel() == 0) return;
  Gemm product{y.size(-2), y.size(-1), a.size(-1), matrix(y), matrix(a), matrix(b), {}, alpha, beta};
  if (product.k == 0) return scale(y, beta);
  Batch batch(y, a, b);
  // One weight for all samples: their rows are one long matrix.
  if (batch.sizes.rank() == 1 && batch.strides[2][0] == 0 && batch.strides[0][0] == product.m * product.y.row &&
      batch.strides[1][0] == product.m * product.a.row) {
    product.m *= batch.sizes[0];
    batch.sizes = {};
  }
  const int64_t count = batch.sizes.numel(), work = product.m * product.n * product.k;
  constexpr int64_t worth_a_thread = 1 << 19, worth_all_threads = 1 << 24;  // multiplications
  if (count == 1) return multiply(product);
  if (count < 16 && work >= worth_all_threads) {
    for (int64_t i = 0; i < count; ++i) multiply(batch.at(product, i));
    return;
  }
  product.of_many = true;
  parallel_for(count, std::max<int64_t>(1, worth_a_thread / work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) multiply(batch.at(product, i));
  });
}

void linear(View y, View x, View w, View bias) {
  if (y.numel() == 0) return;
  if (x.size(-1) == 0) {
    View rows = bias;
    if (!bias) return scale(y, 0);
    rows.shape = y.shape;
    rows.strides = {0, bias.stride(-1)};
    return kernels::copy(cpu, y, rows);
  }
  Matrix column = matrix(bias);
  multiply({y.size(0), y.size(1), x.size(-1), matrix(y), matrix(x), matrix(w).transposed(), column});
}

/// Where a kernel of ours packs dy, it adds up what it packs.
void linear_weight_backward(View dw, View dbias, View dy, View x, float dw_beta, float dbias_beta) {
  const bool can_add = dbias.dtype == Dtype::f32 && dbias.stride(-1) == 1 && (dbias_beta == 0 || dbias_beta == 1);
  const bool is_matrix = dy.size(0) > 1 && dw.size(0) > 1 && dw.size(1) > 1;  // else strides say nothing
  if (can_add && is_matrix && multiplies(dy.dtype)) {
    Gemm product{dw.size(0), dw.size(1), dy.size(0), matrix(dw), matrix(dy).transposed(), matrix(x), {}, 1, dw_beta};
    product.row_sums = dbias.as<float>();
    product.adds_row_sums = dbias_beta == 1;
    if (fast_gemm(product)) return;
  }
  kernels::sum(cpu, View{dbias.data, {1, dbias.size(0)}, {0, dbias.stride(-1)}, dbias.dtype, true}, dy, dbias_beta);
  matmul(dw, dy.transposed(), x, 1, dw_beta);
}

const Install matmul_here{kernels::matmul, cpu, matmul, floats_of_32_bits};
const Install linear_here{kernels::linear, cpu, linear, floats_of_32_bits};
const Install linear_weight_backward_here{kernels::linear_weight_backward, cpu, linear_weight_backward,
                                          floats_of_32_bits};

}  // namespace
}  // namespace cinta
