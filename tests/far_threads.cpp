// What kernels store past the caches, where threads share none or there is more than they hold: the same bits in the
// same places.
#include <catch2/catch.hpp>
#include <cstring>

#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/backends/kernels/optimizer.h"
#include "cinta/cinta.h"
#include "cinta/core/random.h"

using namespace cinta;

namespace {

struct Pretended {
  explicit Pretended(bool far) { pretend_far_apart(far); }
  ~Pretended() { pretend_far_apart({}); }
  Pretended(const Pretended&) = delete;
};

/// Numbers between -2 and 2.
Tensor drawn(const Shape& shape, uint64_t seed, Dtype dtype = Dtype::f32) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 4 * to_uniform(random_word(seed, 0, 0, i)) - 2;
  return cast(from_values(values, shape), dtype);
}

Tensor copy_of(const Tensor& x) {
  const Tensor y = empty(x.shape(), x.dtype());
  std::memcpy(y.view().data, x.view().data, static_cast<size_t>(x.numel() * size_of(x.dtype())));
  return y;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.view().data, b.view().data, static_cast<size_t>(a.numel() * size_of(a.dtype()))) == 0;
}

/// Fills results that `compute` gives, near and far, and compares them.
template <class Compute>
void check_same(Compute compute) {
  std::vector<Tensor> near, far;
  {
    const Pretended as(false);
    near = compute();
  }
  {
    const Pretended as(true);
    far = compute();
  }
  REQUIRE(near.size() == far.size());
  for (size_t i = 0; i < near.size(); ++i) {
    INFO("result " << i);
    CHECK(same_bits(near[i], far[i]));
  }
}

}  // namespace

TEST_CASE("activations are the same where threads share no cache", "[far_threads]") {
  using kernels::Activation;
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (const Shape& shape : {Shape{64, 256}, Shape{7, 100}, Shape{130, 512}, Shape{512, 1072}, Shape{600, 64}}) {
      INFO(join(dtype, shape));
      const Tensor x = drawn(shape, 1, dtype), dy = drawn(shape, 2, dtype);
      check_same([&] {
        const Tensor y = zeros(shape, dtype), slope = zeros(shape, dtype), dx = zeros(shape, dtype),
                     dbias = zeros({shape[1]});
        kernels::activation(cpu, y, slope, x, Activation::gelu);
        kernels::activation_backward(cpu, dx, dbias, dy, slope, 0);
        return std::vector{y, slope, dx, dbias};
      });
      check_same([&] {  // in place
        const Tensor y = copy_of(x), dx = copy_of(dy);
        kernels::activation(cpu, y, View{}, y, Activation::relu);
        kernels::activation_backward(cpu, dx, View{}, dx, x, 0);
        return std::vector{y, dx};
      });
    }
}

TEST_CASE("updates are the same where threads share no cache", "[far_threads]") {
  // Segments that begin within a line, and are longer than a tile's share.
  const Tensor ends = from_values(std::vector<int64_t>{40000, 40010, 40026, 70001}, {4}),
               factors = from_values(std::vector<float>{1, 0.5f, 1, 2}, {4}),
               decays = from_values(std::vector<float>{0, 0.1f, 0, 0.01f}, {4}),
               scalars = from_values(std::vector<float>{1e-2f, 0.7f, 0.271f, 0.002997f}, {4});
  const kernels::Segments segments{ends, factors, decays};
  const Tensor w = drawn({70001}, 1), g = drawn({70001}, 2);
  for (const bool shadowed : {false, true})
    check_same([&] {
      const Tensor one = copy_of(w), other = copy_of(w), m = zeros({70001}), v = zeros({70001}), past = zeros({70001}),
                   shadow = zeros({70001}, Dtype::bf16), shade = zeros({70001}, Dtype::f16);
      kernels::adamw(cpu, one, shadowed ? shadow.view() : View{}, m, v, g, segments, scalars, {0.9f, 0.999f, 1e-8f});
      kernels::sgd(cpu, other, shadowed ? shade.view() : View{}, past, g, segments, scalars, {0.9f, true});
      return std::vector{one, other, m, v, past, shadow, shade};
    });
}

TEST_CASE("the shadow of more weights than caches hold is the weights, rounded", "[far_threads]") {
  const int64_t count = (4 << 20) + 12345;
  const Tensor w = drawn({count}, 1), g = drawn({count}, 2), m = zeros({count}), v = zeros({count}),
               shadow = zeros({count}, Dtype::bf16);
  const Tensor ends = from_values(std::vector<int64_t>{count - 70010, count}, {2}),
               factors = from_values(std::vector<float>{1, 0.5f}, {2}),
               decays = from_values(std::vector<float>{0, 0.1f}, {2}),
               scalars = from_values(std::vector<float>{1e-2f, 0.7f, 0.271f, 0.002997f}, {4}), before = copy_of(w);
  kernels::adamw(cpu, w, shadow, m, v, g, {ends, factors, decays}, scalars, {});
  CHECK(same_bits(shadow, cast(w, Dtype::bf16)));
  CHECK(!same_bits(w, before));
}
