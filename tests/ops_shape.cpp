// Rows of the op table: making tensors, views, joins, casts, writing in place.
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/ops/shape.h"
#include "data_helpers.h"
#include "op_table.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

using In = const Operands&;

const Input x = real({batch, 4, 6});

/// Runs f on a copy of x that lies in every second column of its memory.
template <class F>
Tensor written(const Tensor& x, F f) {
  Tensor memory = full({x.size(0), x.size(1), 2 * x.size(2)}, 7, x.dtype(), x.device());
  Shape strides = memory.strides();
  strides[2] = 2;
  const Tensor y = memory.with_layout(x.shape(), strides, 1);
  copy_(y, x);
  f(y);
  return memory;
}

const OpTable table({
    OpCase("full", {x}, [](In x) { return full(x[0].shape(), 1.5, x[0].dtype(), x[0].device()); }).untracked(),
    OpCase("zeros", {x}, [](In x) { return zeros(x[0].shape(), x[0].dtype(), x[0].device()); }).untracked(),
    OpCase("arange", {x}, [](In x) { return arange(x[0].size(0), 3, -2, x[0].device()); }).untracked(),
    {"contiguous", {x}, [](In x) { return contiguous(transpose(x[0], 0, 2)); }},
    {"reshape",
     {x},
     [](In x) {
       return reshape(x[0], {x[0].size(0), 2, 2, 2, 3});
     }},
    {"reshape",
     {x},
     [](In x) {
       return reshape(x[0], {2, -1, 2});
     },
     "inferred, joined"},
    {"reshape",
     {x},
     [](In x) {
       return reshape(transpose(x[0], 1, 2), {x[0].size(0), 24});
     },
     "copied"},
    {"permute",
     {x},
     [](In x) {
       return permute(x[0], {2, 0, 1});
     }},
    {"transpose", {x}, [](In x) { return transpose(x[0], 0, -1); }},
    {"slice", {x}, [](In x) { return slice(x[0], 1, 1, 3); }},
    {"slice", {x}, [](In x) { return slice(x[0], -1, -4, 6); }, "from the end"},
    {"slice", {x}, [](In x) { return slice(x[0], 2, 2, 2); }, "nothing"},
    {"expand",
     {real({batch, 1, 3})},
     [](In x) {
       return expand(x[0], {2, x[0].size(0), 4, 3});
     }},
    {"squeeze", {real({batch, 1, 3})}, [](In x) { return squeeze(x[0], 1); }},
    {"unsqueeze", {x}, [](In x) { return unsqueeze(x[0], -1); }},
    {"concat",
     {real({batch, 2}), real({batch, 3}), real({batch, 0})},
     [](In x) {
       return concat({x[0], x[1], x[2]}, 1);
     }},
    {"concat",
     {real({batch, 2}), real({4, 2})},
     [](In x) {
       return concat({x[0], x[1], x[0]}, 0);
     },
     "rows"},
    {"split",
     {x},
     [](In x) {
       return split(x[0], {1, 3, 2}, -1);
     }},
    {"split", {x}, [](In x) { return split(x[0], {4}, 1)[0]; }, "whole"},
    {"pad", {x}, [](In x) { return pad(x[0], 1, 2, 1, 0.5); }},
    {"pad", {x}, [](In x) { return pad(x[0], 0, 0, 2); }, "rows"},
    {"cast", {x}, [](In x) { return cast(x[0], Dtype::f64); }},
    OpCase(
        "cast", {x}, [](In x) { return cast(x[0], Dtype::i32); }, "to whole numbers")
        .untracked(),
    {"to",
     {x},
     [](In x) {
       const Device here = x[0].device();
       return here == meta ? to(x[0], meta) : to(to(x[0], host), here);
     }},
    OpCase("fill_", {x}, [](In x) { return written(x[0], [](const Tensor& y) { fill_(y, 2.5); }); }).untracked(),
    OpCase("copy_", {x}, [](In x) { return written(x[0], [](const Tensor&) {}); }).untracked(),
    OpCase("add_", {x, x}, [](In x) { return written(x[0], [&](const Tensor& y) { add_(y, x[1]); }); }).untracked(),
    OpCase("scale_", {x}, [](In x) { return written(x[0], [](const Tensor& y) { scale_(y, 0.3); }); }).untracked(),
});

}  // namespace

TEST_CASE("shape ops", "[ops]") { check_ops(); }

TEST_CASE("a tensor is filled with what its type can hold", "[ops]") {
  for (const Device device : {cpu, reference, meta}) {
    for (const auto& [dtype, values] :
         std::vector<std::pair<Dtype, std::vector<double>>>{{Dtype::u8, {256, 300, -1, NAN, INFINITY}},
                                                            {Dtype::i8, {128, -129, NAN}},
                                                            {Dtype::i32, {0x1p31, -0x1p31 - 1, 1e30, NAN, -INFINITY}},
                                                            {Dtype::i64, {0x1p63, -0x1.0000000000001p63, 1e30, NAN}}}) {
      const Tensor whole = full({2}, 0, dtype, device);
      for (const double value : values) {
        INFO(name_of(dtype) << " " << value);
        CHECK_THAT(error_of<ValueError>([&] { full({1}, value, dtype, device); }),
                   Catch::StartsWith(join("[full] a number that ", dtype, " can hold, given ", value)));
        CHECK_THAT(error_of<ValueError>([&] { fill_(whole, value); }), Catch::StartsWith("[fill_] a number that"));
        CHECK_THAT(error_of<ValueError>([&] { pad(whole, 0, 1, 0, value); }), Catch::StartsWith("[pad] a number that"));
      }
    }
    CHECK_THROWS_AS(full({0}, 300, Dtype::u8, device), ValueError);
  }
  const auto filled = [](double value, Dtype dtype) { return item(full({1}, value, dtype)); };
  CHECK(filled(255.9, Dtype::u8) == 255);
  CHECK(filled(-0.9, Dtype::u8) == 0);
  CHECK(filled(-128.5, Dtype::i8) == -128);
  CHECK(filled(-0x1p31, Dtype::i32) == -0x1p31);
  CHECK(filled(0x1p31 - 1, Dtype::i32) == 0x1p31 - 1);
  CHECK(filled(-0x1p63, Dtype::i64) == -0x1p63);
  CHECK(filled(300, Dtype::boolean) == 1);
  CHECK(std::isnan(filled(NAN, Dtype::f32)));
}

TEST_CASE("nothing is written in place where a tensor is empty", "[ops]") {
  for (const Device device : {cpu, reference, meta}) {
    const Tensor nothing = expand(full({1, 0}, 0, Dtype::f32, device), {5, 0});
    CHECK_NOTHROW(fill_(nothing, 1));
    CHECK_NOTHROW(copy_(nothing, full({5, 0}, 1, Dtype::f32, device)));
    CHECK_NOTHROW(add_(nothing, full({5, 0}, 1, Dtype::f32, device)));
    CHECK_NOTHROW(scale_(nothing, 2));
    CHECK_THROWS_AS(fill_(expand(full({1, 1}, 0, Dtype::f32, device), {5, 1}), 1), ShapeError);
  }
}

TEST_CASE("scaled in place, zeros keep their sign", "[ops]") {
  for (const Device device : {cpu, reference})
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      const Tensor zeros = from_values<float>({0, -0.0f, 0, -0.0f, 0}, {5}, device), x = cast(zeros, dtype);
      scale_(x, 1);
      for (int64_t i = 0; i < 5; ++i) CHECK(std::signbit(to_vector<float>(x)[static_cast<size_t>(i)]) == (i % 2 == 1));
    }
}

TEST_CASE("arange counts", "[ops]") {
  CHECK(to_vector<int64_t>(arange(4)) == std::vector<int64_t>{0, 1, 2, 3});
  CHECK(to_vector<int64_t>(arange(3, 5, -4)) == std::vector<int64_t>{5, 1, -3});
  CHECK(arange(0).shape() == Shape{0});
  CHECK(to_vector<int64_t>(arange(2, INT64_MAX, -INT64_MAX)) == std::vector<int64_t>{INT64_MAX, 0});
  CHECK_THROWS_AS(arange(2, INT64_MAX), ValueError);
  CHECK_THROWS_AS(arange(3, 0, INT64_MAX), ValueError);
}
