// A rehearsal of products asks for the workspace that they take: what `cinta plan` says of a step's memory rests on it.
#include <catch2/catch.hpp>
#include <utility>

#include "cinta/backends/cpu/gemm.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/core/allocator.h"
#include "cinta/core/context.h"
#include "cinta/core/runtime.h"
#include "cinta/core/tensor.h"
#include "cinta/ops/shape.h"
#include "product_helpers.h"

using namespace cinta;
using namespace cinta::testing;

TEST_CASE("a rehearsal asks for the workspace that products take", "[matmul]") {
  struct Case {
    int64_t m, n, k;
    bool a_transposed, b_transposed;
  };
  const ThreadScope one(1);                 // which gets all tiles; of several threads one may get none
  const PretendedWideXeon pretended(true);  // whose products take most
  // Layers' outputs, of few stripes and of many, in one group of rows and in two; their inputs' gradients; weights'
  // gradients, of one block of the sum, of several, and in two halves, which by their own lengths would be cut into
  // different blocks; and sums in parts, of which later ones may have fewer and so larger stripes.
  for (const Case& c :
       {Case{33, 17, 9, false, false}, Case{261, 391, 70, false, true}, Case{131, 1030, 1003, false, true},
        Case{610, 150, 8000, false, true}, Case{1030, 768, 300, false, false}, Case{261, 135, 515, true, false},
        Case{1024, 512, 1024, true, false}, Case{2048, 32, 2178, true, false}, Case{2048, 128, 2178, true, false},
        Case{389, 365, 2051, true, false}, Case{40, 300, 8200, false, false}, Case{64, 640, 9920, false, false},
        Case{44, 70, 17000, false, false}})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      INFO(c.m << "x" << c.n << "x" << c.k << " " << c.a_transposed << c.b_transposed << " " << name_of(dtype));
      const auto operand = [dtype](int64_t rows, int64_t columns, bool transposed) {
        const Tensor x = full(transposed ? Shape{columns, rows} : Shape{rows, columns}, 1, dtype);
        return transposed ? transpose(x, 0, 1) : x;
      };
      const Tensor a = operand(c.m, c.k, c.a_transposed), b = operand(c.k, c.n, c.b_transposed),
                   y = empty({c.m, c.n}, dtype == Dtype::bf16 && !c.a_transposed ? Dtype::bf16 : Dtype::f32);
      const auto peak_of = [](const auto& multiply) {
        context().pool(cpu)->reset_peak();
        multiply();
        return memory_statistics(cpu).peak[static_cast<size_t>(Category::workspace)];
      };
      const auto taken = [&] {
        const auto as_matrix = [](const Tensor& x) {
          return Matrix{x.view().data, x.view().stride(0), x.view().stride(1), x.dtype()};
        };
        const int64_t chosen = peak_of([&] { kernels::matmul(cpu, y, a, b, 1, 0); });
        // Ours, where oneDNN's was chosen.
        return std::pair(chosen, peak_of([&] { gemm({c.m, c.n, c.k, as_matrix(y), as_matrix(a), as_matrix(b), {}}); }));
      };
      std::pair<int64_t, int64_t> rehearsed;
      {
        const Rehearsal rehearsal(cpu);  // it begins and ends without workspaces
        rehearsed = taken();
      }
      CHECK(taken() == rehearsed);
      if (c.k == 8000 && dtype == Dtype::f32 && isa_level() >= isa_avx512 && isa_level() < isa_amx)
        CHECK(rehearsed.second > c.m * c.k / 2 * 4);  // the rows of one of two groups, packed at once
      if (c.m == 1024 && dtype == Dtype::f32 && isa_level() == isa_amx)
        CHECK(rehearsed.second > c.n * c.k * 6);  // the smaller operand, each value as three bf16
    }
}

TEST_CASE("a rehearsal asks for the workspace of a bias's sums, too", "[matmul]") {
  const ThreadScope one(1);
  const Tensor dy = full({2500, 130}, 1, Dtype::bf16), x = full({2500, 200}, 1, Dtype::bf16), dw = empty({130, 200}),
               dbias = empty({130});
  const auto peak = [&] {
    context().pool(cpu)->reset_peak();
    kernels::linear_weight_backward(cpu, dw, dbias, dy, x, 0, 0);
    return memory_statistics(cpu).peak[static_cast<size_t>(Category::workspace)];
  };
  int64_t rehearsed = 0;
  {
    const Rehearsal rehearsal(cpu);
    rehearsed = peak();
  }
  CHECK(peak() == rehearsed);
  if (isa_level() == isa_avx512_bf16 && multiplies(Dtype::bf16)) CHECK(rehearsed >= (130 * 200 + 130) * 4);
}
