// Tensors: layout, values in and out, what is refused.
#include <catch2/catch.hpp>

#include "cinta/core/context.h"
#include "cinta/core/tensor.h"

using namespace cinta;
using Catch::Matchers::Contains;

TEST_CASE("values go into a tensor and come out", "[core]") {
  const Tensor a = from_values<float>(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(a.contiguous());
  CHECK(a.size(-1) == 3);
  CHECK(a.bytes() == 24);
  CHECK(join(a) == "f32[2,3]@cpu");
  CHECK(to_vector<double>(a) == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(to_vector<int64_t>(a) == std::vector<int64_t>{1, 2, 3, 4, 5, 6});
  CHECK(a.data<float>()[5] == 6);
  for (Device device : {cpu, host, reference})
    CHECK(to_vector<int64_t>(from_values<int64_t>(std::vector<int64_t>{INT64_MIN, INT64_MAX}, {2}, device)) ==
          std::vector<int64_t>{INT64_MIN, INT64_MAX});
}

TEST_CASE("a tensor under another layout is read in the order of that layout", "[core]") {
  const Tensor a = from_values<float>(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {3, 4});
  const Tensor transposed = a.with_layout({4, 3}, {1, 4}, 0);
  CHECK_FALSE(transposed.contiguous());
  CHECK(to_vector<float>(transposed) == std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  CHECK(to_vector<float>(a.with_layout({2, 2}, {4, 2}, 5)) == std::vector<float>{5, 7, 9, 11});
  CHECK(to_vector<float>(a.with_layout({2, 3}, {0, 1}, 8)) == std::vector<float>{8, 9, 10, 8, 9, 10});
  CHECK(item(a.with_layout({}, {}, 7)) == 7);
  CHECK(a.with_layout({1, 4}, {999, 1}, 4).contiguous());  // the stride of a size 1 does not matter
}

TEST_CASE("tensors may have no elements", "[core]") {
  for (const Shape& shape : {Shape{0}, Shape{3, 0}, Shape{0, 5, 2}}) {
    const Tensor a = empty(shape);
    CHECK(a.numel() == 0);
    CHECK(a.contiguous());
    CHECK(to_vector<float>(a).empty());
    CHECK_NOTHROW(copy_bytes(a, empty_like(a)));
  }
  CHECK(to_vector<float>(empty({2, 3}).with_layout({0, 3}, {3, 1}, 0)).empty());
}

TEST_CASE("sizes that are negative or overflow are refused before memory is touched", "[core]") {
  const int64_t requests = memory_statistics(cpu).requests;
  const int64_t big = int64_t{1} << 40;
  CHECK_THROWS_AS(empty({-1}), ShapeError);
  CHECK_THROWS_AS(empty({big, big}), ShapeError);
  CHECK_THROWS_AS(empty({big, big, 0}), ShapeError);
  CHECK_THROWS_AS(empty({0, big, big}), ShapeError);
  CHECK_THROWS_AS(empty({int64_t{1} << 61}, Dtype::f64), ShapeError);
  CHECK_THROWS_WITH(empty({-1}), Contains("[empty]") && Contains("[-1]") && Contains("core_tensor.cpp:"));
  CHECK(memory_statistics(cpu).requests == requests);
}

TEST_CASE("wrong requests on tensors name what was given", "[core]") {
  const Tensor a = from_values<float>(std::vector<float>{1, 2, 3, 4}, {2, 2});
  CHECK_THROWS_WITH(from_values<float>(std::vector<float>{1, 2, 3}, {2, 2}), Contains("[2,2]") && Contains("given 3"));
  CHECK_THROWS_WITH(a.data<double>(), Contains("the tensor holds f64: f32[2,2]@cpu"));
  CHECK_THROWS_AS(a.data<double>(), DtypeError);
  CHECK_THROWS_AS(a.with_layout({2, 2}, {1, 2}, 0).data<float>(), ShapeError);
  CHECK_THROWS_AS(item(a), ShapeError);
  CHECK_THROWS_AS(copy_bytes(a, empty({4})), ShapeError);
  CHECK_THROWS_AS(copy_bytes(a, empty({2, 2}, Dtype::i32)), ShapeError);
  const Tensor shapes = empty({2, 2}, Dtype::f32, meta);
  CHECK_THROWS_WITH(copy_bytes(a, shapes),
                    Contains("[copy_bytes]") && Contains("f32[2,2]@meta") && Contains("core_tensor.cpp:"));
  CHECK_THROWS_AS(copy_bytes(a, shapes), DeviceError);
  copy_bytes(shapes, a);
  copy_bytes(shapes, empty({2, 2}, Dtype::f32, meta));
  CHECK_THROWS_AS(to_vector<float>(Tensor()), InputError);
  CHECK_THROWS_AS(to_vector<float>(empty({2}, Dtype::f32, meta)), DeviceError);
  CHECK_THROWS_AS(Tensor().data<float>(), InputError);
  CHECK_THROWS_AS(Tensor().device(), ValueError);
  for (int dim : {2, -3, 1000}) CHECK_THROWS_WITH(a.size(dim), Contains("f32[2,2]@cpu has no dimension"));
}

TEST_CASE("the meta device has shapes and counts bytes, but no memory", "[core]") {
  Context rank;
  const ContextScope inside(rank);
  const Tensor huge = empty({int64_t{1} << 20, int64_t{1} << 20}, Dtype::f32, meta);
  CHECK(huge.numel() == int64_t{1} << 40);
  CHECK(memory_statistics(meta).live_total == int64_t{1} << 42);
  CHECK(memory_statistics(cpu).live_total == 0);
}

TEST_CASE("detach and copies of the handle share memory", "[core]") {
  const Tensor a = from_values<float>(std::vector<float>{1, 2}, {2});
  const Tensor b = a, c = detach(a);
  b.data<float>()[0] = 9;
  CHECK(to_vector<float>(c) == std::vector<float>{9, 2});
  CHECK(a.storage().use_count() == 3);
  CHECK_FALSE(Tensor());
  CHECK_FALSE(Tensor().view());
}
