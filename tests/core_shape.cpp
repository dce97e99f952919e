// Shapes, broadcasting, error messages, names of devices.
#include <catch2/catch.hpp>

#include "cinta/core/device.h"
#include "cinta/core/shape.h"
#include "cinta/core/tensor.h"

using namespace cinta;
using Catch::Matchers::Contains;

TEST_CASE("a shape counts its elements and strides", "[core]") {
  CHECK(Shape{}.numel() == 1);
  CHECK(Shape{3, 0, 5}.numel() == 0);
  CHECK(contiguous_strides({2, 3, 4}) == Shape{12, 4, 1});
  CHECK(contiguous_strides({}) == Shape{});
  CHECK(Shape{1, 2, 3, 4, 5, 6, 7, 8}.rank() == 8);
  CHECK_THROWS_AS((Shape{1, 2, 3, 4, 5, 6, 7, 8, 9}), ShapeError);
  CHECK_THROWS_AS(Shape::filled(9, 1), ShapeError);
  Shape full = Shape::filled(8, 1);
  CHECK_THROWS_WITH(full.push_back(1), Contains("at most 8 dimensions, given 9"));
  CHECK(Shape{2, 3} != Shape{2, 3, 1});
  CHECK(join(Shape{2, 3}, Shape{}) == "[2,3][]");
}

TEST_CASE("a dimension may be counted from the end", "[core]") {
  CHECK(normalize_dim(-1, 3, "sum", {}) == 2);
  CHECK(normalize_dim(-3, 3, "sum", {}) == 0);
  CHECK(normalize_dim(2, 3, "sum", {}) == 2);
  for (int dim : {3, -4, 100})
    CHECK_THROWS_WITH(normalize_dim(dim, 3, "sum", {}),
                      "[sum] dimension " + std::to_string(dim) + " is outside a tensor of rank 3");
}

TEST_CASE("shapes broadcast where sizes are equal or 1, aligned at the end", "[core]") {
  CHECK(broadcast_shape({2, 3}, {3}, "add", {}) == Shape{2, 3});
  CHECK(broadcast_shape({2, 1}, {1, 3}, "add", {}) == Shape{2, 3});
  CHECK(broadcast_shape({}, {4}, "add", {}) == Shape{4});
  CHECK(broadcast_shape({0, 1}, {3}, "add", {}) == Shape{0, 3});
  CHECK(broadcast_shape({1}, {0}, "add", {}) == Shape{0});
  CHECK_THROWS_AS(broadcast_shape({2}, {0}, "add", {}), ShapeError);
  CHECK_THROWS_WITH(broadcast_shape({2, 3}, {2, 4}, "add", {}),
                    "[add] shapes do not broadcast: [2,3] with [2,4] (3 != 4 at dimension -1)");
  CHECK(broadcast_strides({3}, {1}, {2, 3}) == Shape{0, 1});
  CHECK(broadcast_strides({2, 1}, {5, 1}, {4, 2, 3}) == Shape{0, 5, 0});
}

TEST_CASE("an error's text ends before its place, whatever it tells of", "[core]") {
  const ValueError error(located("plan", "sizes are positive, given 'a, mlp.cpp:3'", Where::current()));
  CHECK(error.text() == "[plan] sizes are positive, given 'a, mlp.cpp:3'");
  CHECK_THAT(error.what(), Catch::Matchers::Matches(".*mlp\\.cpp:3', core_shape\\.cpp:[0-9]+"));
  CHECK(FileError("a, mlp.cpp:3").text() == "a, mlp.cpp:3");
}

TEST_CASE("an error names the op, what was given, the module and the line", "[core]") {
  const Tensor a = empty({32, 128}), b = empty({64, 10});
  std::string message;
  int line = 0;
  try {
    const NameScope outer("mlp");
    const NameScope inner("fc2");
    line = __LINE__ + 1;
    require<ShapeError>(false, "matmul", Where::current(), "inner sizes differ: lhs ", a, " x rhs ", b, " (", 128,
                        " != ", 64, ")");
  } catch (const InputError& error) {
    message = error.what();
  }
  CHECK(message ==
        "[matmul] inner sizes differ: lhs f32[32,128]@cpu x rhs f32[64,10]@cpu (128 != 64), in mlp.fc2, "
        "core_shape.cpp:" +
            std::to_string(line));
  CHECK(NameScope::path().empty());
  CHECK_NOTHROW(require(true, "matmul", Where::current(), "never built"));
  CHECK(join(1.5, " ", -3L, " ", 7u, " ", std::string("x"), " ", Tensor()) == "1.5 -3 7 x (no tensor)");
}

TEST_CASE("devices have names", "[core]") {
  for (const char* name : {"cpu", "reference", "meta", "cpu:3", "host"}) CHECK(name_of(parse_device(name)) == name);
  CHECK(parse_device("cpu") == cpu);
  CHECK(parse_device("host") == host);
  for (const char* name : {"", "tpu", "cpu:", "cpu:x", "cpu:-1", "cpu:999", "CPU", "cpu:1:2"})
    CHECK_THROWS_WITH(parse_device(name), Contains("is not built; available: cpu"));
}
