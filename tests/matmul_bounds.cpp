// Products touch nothing but their operands: here these end, or begin, where no memory may be touched at all.
#include <sys/mman.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/core/random.h"
#include "cinta/core/tensor.h"
#include "product_helpers.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

/// Memory of `bytes` at the end of its pages, or at their beginning, with pages around that none may touch.
class Fenced {
 public:
  Fenced(int64_t bytes, bool at_end) : size_((bytes + page - 1) / page * page + 2 * page) {
    void* all = mmap(nullptr, static_cast<size_t>(size_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(all != MAP_FAILED);
    begin_ = static_cast<char*>(all);
    REQUIRE(mprotect(begin_, page, PROT_NONE) == 0);
    REQUIRE(mprotect(begin_ + size_ - page, page, PROT_NONE) == 0);
    data_ = at_end ? begin_ + size_ - page - bytes : begin_ + page;
  }
  ~Fenced() { munmap(begin_, static_cast<size_t>(size_)); }
  Fenced(const Fenced&) = delete;
  void* data() const { return data_; }

 private:
  static constexpr int64_t page = 4096;
  int64_t size_;
  char *begin_, *data_;
};

/// A matrix [rows, columns] of random numbers between fences, by rows or by columns.
struct FencedMatrix {
  FencedMatrix(int64_t rows, int64_t columns, bool transposed, Dtype dtype, bool at_end, uint32_t stream)
      : memory(rows * columns * size_of(dtype), at_end) {
    view = {memory.data(), {rows, columns}, {columns, 1}, dtype, true};
    if (transposed) view.strides = {1, rows};
    std::vector<float> values(static_cast<size_t>(rows * columns));
    for (size_t i = 0; i < values.size(); ++i) values[i] = to_uniform(random_word(1, stream, 0, i)) - 0.5f;
    const View flat{memory.data(), {rows * columns}, {1}, dtype, true};
    kernels::copy(cpu, flat, from_values(values, {rows * columns}));
  }
  Fenced memory;
  View view;
};

/// The same numbers in memory of our own.
Tensor copy_of(const View& view, Dtype dtype) {
  const Tensor out = empty(view.shape, dtype);
  kernels::copy(cpu, out, view);
  return out;
}

}  // namespace

TEST_CASE("a product touches nothing beyond its operands", "[matmul]") {
  struct Case {
    int64_t m, n, k;
    bool a_transposed, b_transposed;
  };
  // A layer's outputs, its input's gradients, its weights' gradients: sizes with a rest in each direction, and so small
  // or so large that each kernel is met.
  for (const Case& c :
       {Case{261, 391, 70, false, true}, Case{131, 65, 33, false, true}, Case{193, 1001, 258, false, true},
        Case{261, 1030, 1003, false, true}, Case{5, 3, 7, false, true}, Case{203, 101, 66, false, false},
        Case{197, 512, 130, false, false}, Case{7, 33, 9, false, false}, Case{261, 135, 515, true, false},
        Case{135, 261, 515, true, false}, Case{389, 365, 2051, true, false}, Case{9, 17, 35, true, false},
        Case{40, 300, 8200, false, false}, Case{64, 256, 258, false, true}, Case{2050, 272, 37, true, false}})
    for (auto [dtype, y_dtype] : {std::pair{Dtype::f32, Dtype::f32},
                                  {Dtype::bf16, Dtype::f32},
                                  {Dtype::bf16, Dtype::bf16},
                                  {Dtype::f16, Dtype::f16},
                                  {Dtype::f16, Dtype::f32}})
      for (auto [wide, at_end] : {std::pair{false, false}, {false, true}, {true, false}, {true, true}})
        for (float beta : {0.0f, 1.0f}) {
          const PretendedWideXeon pretended(wide);
          INFO(c.m << "x" << c.n << "x" << c.k << " " << c.a_transposed << c.b_transposed << " " << name_of(dtype)
                   << " to " << name_of(y_dtype) << (at_end ? " at the end" : " at the beginning") << " beta " << beta
                   << (wide ? " wide" : ""));
          const FencedMatrix a(c.m, c.k, c.a_transposed, dtype, at_end, 1),
              b(c.k, c.n, c.b_transposed, dtype, at_end, 2), y(c.m, c.n, false, y_dtype, at_end, 3);
          const Tensor want = copy_of(y.view, Dtype::f32);
          kernels::matmul(cpu, want, copy_of(a.view, Dtype::f32), copy_of(b.view, Dtype::f32), 1, beta);
          kernels::matmul(cpu, y.view, a.view, b.view, 1, beta);
          const auto expected = to_vector<float>(want), got = to_vector<float>(copy_of(y.view, Dtype::f32));
          const double unit = y_dtype == Dtype::bf16 ? 0x1p-8 : y_dtype == Dtype::f16 ? 0x1p-11 : 0x1p-24;
          // Both sum up to k terms of at most 1/4 in some order: sqrt(k) roundings of a partial sum of about
          // sqrt(k) / 12, and 8 deviations.
          const double summed = 8 * 0x1p-24 * static_cast<double>(c.k) / 12;
          double worst = 0;
          for (size_t i = 0; i < got.size(); ++i)
            worst = std::max(worst, std::abs(got[i] - expected[i]) / (summed + unit * std::abs(expected[i])));
          CHECK(worst <= 1);
        }
}
