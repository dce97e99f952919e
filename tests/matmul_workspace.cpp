// A rehearsal of products asks for the workspace that they take: what `cinta plan` says of a step's memory rests on it.
#include <catch2/catch.hpp>

#include "cinta/backends/cpu/isa.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/backends/threads.h"
#include "cinta/core/allocator.h"
#include "cinta/core/context.h"
#include "cinta/core/runtime.h"
#include "cinta/core/tensor.h"
#include "cinta/ops/shape.h"

using namespace cinta;

TEST_CASE("a rehearsal asks for the workspace that products take", "[matmul]") {
  struct Case {
    int64_t m, n, k;
    bool a_transposed, b_transposed;
  };
  const int before = threads();
  set_threads(1);           // which gets all tiles; of several threads one may get none
  pretend_wide_xeon(true);  // whose products take most
  // Layers' outputs, of few stripes and of many, in one group of rows and in two; their inputs' gradients; weights'
  // gradients, of one block of the sum, of several, and in two halves, of which the second has fewer blocks.
  for (const Case& c :
       {Case{33, 17, 9, false, false}, Case{261, 391, 70, false, true}, Case{131, 1030, 1003, false, true},
        Case{610, 150, 8000, false, true}, Case{1030, 768, 300, false, false}, Case{261, 135, 515, true, false},
        Case{1024, 512, 1024, true, false}, Case{2048, 32, 2178, true, false}, Case{389, 365, 2051, true, false}})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      INFO(c.m << "x" << c.n << "x" << c.k << " " << c.a_transposed << c.b_transposed << " " << name_of(dtype));
      const auto operand = [dtype](int64_t rows, int64_t columns, bool transposed) {
        const Tensor x = full(transposed ? Shape{columns, rows} : Shape{rows, columns}, 1, dtype);
        return transposed ? transpose(x, 0, 1) : x;
      };
      const Tensor a = operand(c.m, c.k, c.a_transposed), b = operand(c.k, c.n, c.b_transposed),
                   y = empty({c.m, c.n}, dtype == Dtype::bf16 && !c.a_transposed ? Dtype::bf16 : Dtype::f32);
      const auto taken = [&] {
        context().pool(cpu)->reset_peak();
        kernels::matmul(cpu, y, a, b, 1, 0);
        return memory_statistics(cpu).peak[static_cast<size_t>(Category::workspace)];
      };
      int64_t rehearsed = 0;
      {
        const Rehearsal rehearsal(cpu);  // it begins and ends without workspaces
        rehearsed = taken();
      }
      CHECK(taken() == rehearsed);
    }
  pretend_wide_xeon(std::nullopt);
  set_threads(before);
}
