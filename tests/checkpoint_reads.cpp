// What a segment reads when it runs again has to be what it read at first: inputs, what its function captured, options
// of ops, what ops that are not recorded read, and outputs that were kept.
#include <catch2/catch.hpp>

#include "cinta/autograd/checkpoint.h"
#include "cinta/autograd/function.h"
#include "cinta/autograd/tape.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/attention.h"
#include "cinta/ops/dropout.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/round.h"
#include "cinta/ops/shape.h"
#include "data_helpers.h"

using namespace cinta;
using namespace cinta::autograd;
using namespace cinta::testing;

namespace {

using Function = Callback<Tensor(const Tensor&)>;

Tensor leaf(const Shape& shape) {
  std::vector<float> numbers(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i + 1);
  Tensor out = from_values(numbers, shape);
  return require_gradient(out);
}
std::vector<float> values(const Tensor& tensor) { return to_vector<float>(tensor); }

/// What backward through a segment of `f` says where `change` has run before; where it says nothing, it gives what it
/// gives without a segment.
std::string walk_after(const Function& change, const Function& f, const Tensor& x) {
  const std::vector<float> plain = values(grad({sum(f(x))}, {x})[0]);
  const Tensor y = sum(checkpoint(f, x));
  change({});
  std::vector<float> found = plain;
  const std::string error = error_of<ValueError>([&] { found = values(grad({y}, {x})[0]); });
  CHECK(found == plain);
  return error;
}
Function fills(const Tensor& tensor, double value = 1) {
  return [=](const Tensor&) {
    fill_(tensor, value);
    return Tensor();
  };
}
const Function nothing = [](const Tensor&) { return Tensor(); };

void check_refused(const std::string& error, const std::string& op, const std::string& writer = "fill_") {
  INFO(error);
  CHECK(error.find("[checkpoint] what " + op + " read in the segment") == 0);
  CHECK(error.find("was overwritten in place by " + writer + " before backward") != std::string::npos);
}

/// x * factor, which is no input.
struct Scaling {
  static constexpr const char* name = "scaling";
  Tensor factor;
  Saved kept;
  Tensor forward(const Tensor& x) {
    Tensor y = empty_like(x);
    kernels::multiply(x.device(), y, x, factor);
    return y;
  }
  void save(const Tensor&, const Tensor&) { kept.keep(factor); }
  void backward(const Tensor& dy, Sinks sinks) { sinks[0].put(dy * kept.get()); }
};

}  // namespace

TEST_CASE("an option of an op overwritten before backward is found out", "[checkpointing]") {
  const Tensor x = leaf({1, 3, 1}), joint = leaf({1, 3, 3}), lengths = from_values<int32_t>({3}, {1}),
               offsets = from_values<int32_t>({0, 2, 3}, {3}), rows = from_values<int64_t>({2, 0}, {2});
  const Function with_lengths = [=](const Tensor& t) {
    const Tensor heads = unsqueeze(t, 1);
    return attention(heads, heads, heads, {.lengths = lengths});
  };
  const Function with_offsets = [=](const Tensor& t) { return self_attention(t, 1, {.offsets = offsets}); };
  const Function with_rows = [=](const Tensor& t) {
    return self_attention(reshape(slice(t, 1, 0, 2), {2, 1}), concat({t, t}, 2), rows, 1);
  };
  CHECK(walk_after(nothing, with_lengths, x) == "no error");
  CHECK(walk_after(nothing, with_offsets, joint) == "no error");
  CHECK(walk_after(nothing, with_rows, x) == "no error");
  check_refused(walk_after(fills(lengths), with_lengths, x), "attention");
  check_refused(walk_after(fills(offsets, 0), with_offsets, joint), "self_attention");
  check_refused(walk_after(fills(rows), with_rows, x), "self_attention");
  const Tensor factor = full({1, 3, 1}, 2);
  const Function scales = [=](const Tensor& t) { return apply(Scaling{factor, {}}, Where(), t); };
  CHECK(walk_after(nothing, scales, x) == "no error");
  check_refused(walk_after(fills(factor), scales, x), "scaling");
}

TEST_CASE("what an op that is not recorded reads, overwritten before backward, is found out", "[checkpointing]") {
  const Tensor x = leaf({3}), mask = from_values(std::vector<float>{2, -5, 3}, {3});
  const auto refused = [&](const Function& f, const std::string& op) {
    fill_(mask, 2);
    CHECK(walk_after(nothing, f, x) == "no error");
    check_refused(walk_after(fills(mask), f, x), op);
  };
  refused([=](const Tensor& t) { return t * t * (mask * 1.0); }, "affine");
  refused([=](const Tensor& t) { return t * t * reshape(mask, {1, 3}); }, "reshape");
  refused([=](const Tensor& t) { return where(greater(mask, 1.5), t * t, t); }, "greater");
  refused(
      [=](const Tensor& t) {
        const NoGrad off;
        const Tensor twice = exp(mask);
        const Scoped on(&Mode::recording, true);
        return t * t * twice;
      },
      "exp");
  for (const auto& [write, op] : {std::pair{&add_, "add_"}, std::pair{&copy_, "copy_"}})
    refused(
        [=, write = write](const Tensor& t) {
          const Tensor written = zeros({3});
          write(written, mask, Where());
          return t * t * written;
        },
        op);
}

TEST_CASE("what an op that is not recorded gives, in a segment, may be overwritten", "[checkpointing]") {
  const Tensor x = leaf({3}), mask = from_values(std::vector<float>{2, 5, 3}, {3});
  Tensor twice;
  const Function f = [&](const Tensor& t) {
    twice = mask * 2.0;
    return t * t * twice;
  };
  CHECK(walk_after([&](const Tensor&) { return fill_(twice, 0), Tensor(); }, f, x) == "no error");
}

TEST_CASE("options of ops that are not recorded, overwritten before backward, are found out", "[checkpointing]") {
  const Tensor x = leaf({1, 1, 3, 1}), other = detach(x), lengths = from_values<int32_t>({3}, {1});
  Random random(7);
  const Function mixes = [=](const Tensor& t) { return t * t * attention(other, other, other, {.lengths = lengths}); };
  const Function drops = [=, &random](const Tensor& t) { return t * t * dropout(other, random.site("here", 0.5)); };
  const Function rounds = [=, &random](const Tensor& t) {
    const RoundOptions options{.rounding = Rounding::stochastic, .random = random.site("there")};
    return t * t * cast(round_to(other, Dtype::f8e4m3, options), Dtype::f32);
  };
  const Function steps = [&random](const Tensor&) { return random.set_step(1), Tensor(); };
  check_refused(walk_after(fills(lengths), mixes, x), "attention");
  check_refused(walk_after(steps, drops, x), "dropout", "Random");
  random.set_step(0);
  check_refused(walk_after(steps, rounds, x), "round_to", "Random");
}

TEST_CASE("a kept output that the segment overwrites is found out", "[checkpointing]") {
  const Tensor x = leaf({2, 2}), w = full({2, 2}, 0.1);
  const auto walk = [&](const std::vector<std::string>& keep, bool writes) {
    const auto f = [&, writes](std::span<const Tensor> in) {
      const Tensor h = matmul(in[0], w);
      if (writes) {
        const NoGrad off;
        scale_(h, 2);
      }
      return std::vector<Tensor>{exp(h)};
    };
    const std::vector<float> plain = values(grad({sum(f(std::vector<Tensor>{x})[0])}, {x})[0]);
    const Tensor y = sum(checkpoint_segment(f, {x}, keep)[0]);
    std::vector<float> found = plain;
    const std::string error = error_of<ValueError>([&] { found = values(grad({y}, {x})[0]); });
    CHECK(found == plain);
    return error;
  };
  CHECK(walk({}, true) == "no error");
  CHECK(walk({"matmul"}, false) == "no error");
  const std::string error = walk({"matmul"}, true);
  INFO(error);
  CHECK(error.find("[checkpoint] what matmul gave and is kept, f32[2,2]@cpu, was overwritten in place by scale_") == 0);
  CHECK(error.find("checkpoint_reads.cpp:") != std::string::npos);
}

TEST_CASE("no walk begins inside a segment", "[checkpointing]") {
  const Tensor x = leaf({3}), other = leaf({3}), outside = sum(other * other);
  int runs = 0;
  const auto refused = [&](const std::string& op, const Callback<void(const Tensor&)>& walk) {
    runs = 0;
    const Function f = [&](const Tensor& t) { return walk(t), exp(t); };
    const std::string error = error_of<ValueError>([&] { backward(sum(checkpoint(f, x))); });
    INFO(error);
    CHECK(error.find(op + " a walk that begins outside of checkpointed segments, given one that begins inside") == 0);
    CHECK(error.find("checkpoint_reads.cpp:") != std::string::npos);
  };
  refused("[grad]", [](const Tensor& t) {
    Tensor z = detach(t);
    require_gradient(z);
    grad({sum(z * z * z)}, {z});
  });
  refused("[backward]", [&](const Tensor&) { backward(outside); });
  refused("[backward]", [&](const Tensor&) {
    if (++runs == 2) backward(outside);
  });
}
