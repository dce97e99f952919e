// Under autocast the residual stays f32 from layer to layer, and the copies in the low type that products read are
// written with it: no number and no gradient may depend on whether such a copy is there.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "autocast_helpers.h"
#include "cinta/autograd/checkpoint.h"
#include "cinta/autograd/tape.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/dropout.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/normalize.h"
#include "cinta/ops/random.h"
#include "cinta/ops/reduce.h"

using namespace cinta;
using namespace cinta::autograd;
using namespace cinta::testing;

TEST_CASE("the residual stays f32, and its copies in the low type are written with it", "[autocast]") {
  const Tensor w = leaf({6, 6}, 2), gain = leaf({6}, 3), residual = leaf({4, 6}, 4);
  const Random random(5);
  const auto layer = [&](const Tensor& carried) {
    const Tensor dropped = dropout(carried, random.site("in", 0.3));
    return residual_norm(linear(dropped, w), {}, dropped, gain, {}, {.dropout = random.site("out", 0.3)});
  };
  Casts casts;
  const Scoped watching(&Mode::observer, static_cast<Observer*>(&casts));
  const AutocastScope scope(bf16_scope);
  const Tensor first = layer(residual);
  CHECK(first.dtype() == Dtype::f32);
  CHECK(values(Tensor(first.storage()->shadow.storage, first.shape(), first.strides(), 0, Dtype::bf16)) ==
        values(cast(first, Dtype::bf16)));
  CHECK(casts.count == 1);  // that one
  CHECK(values(linear(first, w)) == values(linear(cast(first, Dtype::bf16), w)));
  // What was written since is read as it is now.
  const Tensor before = linear(detach(first), w);
  {
    const NoGrad off;
    scale_(first, 2);
  }
  CHECK(values(linear(first, w)) == values(affine(before, 2, 0)));
  // A segment keeps what goes in, and no copy that it can make again.
  const Tensor in = layer(residual);
  CHECK(in.storage()->shadow.storage != nullptr);
  const Tensor out = checkpoint(layer, in);
  CHECK(in.storage()->shadow.storage == nullptr);
}

TEST_CASE("norms write what products read, and a sum reads two types", "[autocast]") {
  const Tensor w = leaf({6, 6}, 2), gain = leaf({6}, 3), x = leaf({4, 6}, 4);
  Casts casts;
  const Scoped watching(&Mode::observer, static_cast<Observer*>(&casts));
  const AutocastScope scope(bf16_scope);
  for (auto norm : {+[](const Tensor&in, const Tensor&g) { return layer_norm(in, g); },
                    +[](const Tensor&in, const Tensor&g) { return rms_norm(in, g); }}) {
    const Tensor normed = norm(x, gain), branch = linear(normed, w), sum = x + branch;
    CHECK(branch.dtype() == Dtype::bf16);
    CHECK(sum.dtype() == Dtype::f32);
    CHECK(casts.count == 0);
    const Tensor part = slice(normed, 0, 1, 3), columns = permute(slice(normed, 0, 1, 3), {1, 0}),
                 of_part = linear(part, w), of_columns = matmul(columns, part),
                 of_copy = linear(reshape(columns, {2, 6}), w);
    CHECK(casts.count == 0);  // nor for what is seen of it in another way
    CHECK(values(branch) == values(linear(cast(normed, Dtype::bf16), w)));
    CHECK(values(sum) == values(x + cast(branch, Dtype::f32)));
    CHECK(values(of_part) == values(linear(cast(part, Dtype::bf16), w)));
    CHECK(values(of_columns) == values(matmul(cast(columns, Dtype::bf16), cast(part, Dtype::bf16))));
    CHECK(values(of_copy) == values(linear(cast(reshape(columns, {2, 6}), Dtype::bf16), w)));
    casts.count = 0;
  }
}

TEST_CASE("the residual's gradient reaches the branches in the low type, written with the sum or cast from it",
          "[autocast]") {
  const Tensor w = leaf({6, 6}, 2), v = leaf({6, 6}, 5), gain = leaf({6}, 3), x = leaf({4, 6}, 4),
               dy = spread({4, 6}, 6);
  const auto layer_norm_of = [&](const Tensor& in) { return layer_norm(in, gain); };
  const auto rms_norm_of = [&](const Tensor& in) { return rms_norm(in, gain); };
  const auto itself = [](const Tensor& in) { return in; };
  const auto gelu_of = [](const Tensor& in) { return gelu(in); };
  // What reads the sums, and so writes to their gradients last; the norm at the end always does.
  const auto compare = [&](const auto& reader, int casts_expected) {
    std::vector<float> results[2];
    for (const bool explicitly : {false, true}) {
      Casts casts;
      const AutocastScope scope(bf16_scope);
      const auto half = [&](const Tensor& in, const Tensor& weight) {
        const Tensor branch = linear(reader(in), weight);
        return in + (explicitly ? cast(branch, Dtype::f32) : branch);
      };
      const Tensor y = rms_norm(half(half(affine(x, 2, 1), w), v), gain);
      const Scoped watching(&Mode::observer, static_cast<Observer*>(&casts));
      for (const Tensor& each : grad({y}, {x, w, v, gain}, {.seeds = {dy}}))
        for (float value : values(each)) results[explicitly].push_back(value);
      CHECK(casts.count == (explicitly ? 2 : casts_expected));
    }
    CHECK(results[0] == results[1]);
  };
  compare(layer_norm_of, 0);
  compare(rms_norm_of, 0);
  compare(itself, 1);  // the product adds to a sum whose copy is out of date then
  compare(gelu_of, 1);
}

TEST_CASE("a gradient's copy in the low type is its branch's alone, and narrower", "[autocast]") {
  const Tensor w = leaf({6, 6}, 2), gain = leaf({6}, 3), x = leaf({4, 6}, 4), dy = spread({4, 6}, 6);
  {
    const AutocastScope scope(bf16_scope);
    const Tensor branch = linear(rms_norm(x, gain), w), sum = affine(x, 2, 1) + branch, y = rms_norm(sum, gain);
    const std::vector<Tensor> both = grad({y}, {sum, branch}, {.retain_graph = true, .seeds = {dy}});
    CHECK(both[1].dtype() == Dtype::bf16);
    CHECK(!both[1].slot);
    CHECK(values(both[1]) == values(cast(both[0], Dtype::bf16)));
    CHECK(both[0].storage()->shadow.storage != both[1].storage());
    // A seed's own shadow is no gradient's.
    const Tensor seed = layer_norm(x, gain), given = grad({sum}, {branch}, {.seeds = {seed}})[0];
    CHECK(seed.storage()->shadow.storage != given.storage());
  }
  // Shown low, a sum of f32 tensors has a gradient in bf16, and passes it on as it is.
  Autocast low = bf16_scope;
  low.modules = {{"low", CastPolicy::low}};
  const AutocastScope scope(low);
  const NameScope inside("low");
  const Tensor left = affine(x, 2, 1), right = affine(x, 3, 1), y = rms_norm(left + right, gain);
  const Tensor gradient = grad({y}, {left}, {.seeds = {cast(dy, Dtype::bf16)}})[0];
  CHECK(values(gradient) == values(cast(gradient, Dtype::bf16)));
}

TEST_CASE("a norm's operand may be its gain", "[autocast][ops]") {
  const Tensor x = leaf({8}, 1), dy = spread({8}, 2);
  for (auto norm : {+[](const Tensor&in, const Tensor&g) { return layer_norm(in, g); },
                    +[](const Tensor&in, const Tensor&g) { return rms_norm(in, g); }}) {
    const Tensor one = affine(x, 2, 1), two = affine(x, 2, 1);
    const std::vector<Tensor> apart = grad({norm(one, two)}, {one, two}, {.seeds = {dy}});
    const std::vector<float> sum = values(apart[0] + apart[1]);
    CHECK(values(grad({norm(one, one)}, {one}, {.seeds = {dy}})[0]) == sum);
    Tensor parameter = detach(one);
    require_gradient(parameter);
    for (int walk = 1; walk <= 2; ++walk) {
      backward(norm(parameter, parameter), {.seeds = {dy}});
      CHECK(values(gradient(parameter)) == values(affine(apart[0] + apart[1], walk, 0)));
    }
  }
}

TEST_CASE("a segment that sees its operand in another way has the bits of one that is not run again", "[autocast]") {
  const Tensor x = leaf({4, 5, 51}, 1), gain = leaf({51}, 2), dy = cast(spread({51, 5, 5}, 3), Dtype::bf16);
  const AutocastScope scope(bf16_scope);
  const auto segment = [](const Tensor& in) {
    const Tensor across = permute(in, {2, 1, 0});
    return matmul(across, permute(across, {0, 2, 1}));
  };
  std::vector<float> results[2];
  for (const bool again : {false, true}) {
    const Tensor in = layer_norm(x, gain), y = again ? checkpoint(segment, in) : segment(in);
    results[again] = values(grad({y}, {x}, {.seeds = {dy}})[0]);
  }
  CHECK(results[0] == results[1]);
}

TEST_CASE("a norm of a wide operand keeps its rows in the low type, and both gradients follow from them",
          "[autocast]") {
  const Tensor x = leaf({3, 2, 16}, 1), gain = leaf({16}, 2), dy = spread({3, 2, 16}, 3);
  for (const Autocast& types : {bf16_scope, f16_scope})
    for (auto norm : {+[](const Tensor&in, const Tensor&g) { return layer_norm(in, g); },
                      +[](const Tensor&in, const Tensor&g) { return rms_norm(in, g); }}) {
      const auto gradients = [&](const Tensor& y, bool composed) {
        std::vector<float> out;
        for (const Tensor& each : grad({y}, {x, gain}, {.retain_graph = true, .create_graph = composed, .seeds = {dy}}))
          for (float value : values(each)) out.push_back(value);
        return out;
      };
      const std::vector<float> wide = gradients(norm(affine(x, 5, 3), gain), false);
      const Tensor y = [&] {
        const AutocastScope scope(types);
        return norm(affine(x, 5, 3), gain);
      }();
      const std::vector<float> fused = gradients(y, false), composed = gradients(y, true);
      CHECK(fused != wide);
      const float unit = types.low == Dtype::bf16 ? 0x1p-8f : 0x1p-11f;
      float largest = 0;
      for (float value : wide) largest = std::max(largest, std::abs(value));
      for (size_t i = 0; i < wide.size(); ++i) {
        CHECK(std::abs(fused[i] - wide[i]) <= 4 * unit * largest);       // every row's numbers are off by a half unit
        CHECK(std::abs(composed[i] - fused[i]) <= 16 * unit * largest);  // whose statistics are not 0 and 1 any more
      }
    }
}

TEST_CASE("no gradient depends on whether a copy in the low type is there", "[autocast]") {
  const Tensor w = leaf({6, 6}, 2), v = leaf({6, 6}, 6), gain = leaf({6}, 3), residual = leaf({4, 6}, 4),
               weight = spread({4, 6}, 7);
  const Random random(5);
  const auto layer = [&](const Tensor& carried) {
    return residual_norm(linear(carried, w), {}, carried, gain, {}, {.dropout = random.site("out", 0.3)});
  };
  const auto probe = [&](const Tensor& carried) { return gelu(linear(carried, v)); };
  const auto gradients = [&](auto run) {
    for (const Tensor& each : {w, v, residual, gain}) clear_gradient(each);
    backward(sum(run(layer(residual)) * weight));
    std::vector<float> out;
    for (const Tensor& each : {w, v, residual, gain})
      for (float value : values(gradient(each))) out.push_back(value);
    return out;
  };
  const AutocastScope scope(bf16_scope);
  // One tensor that two segments read, and an op behind them.
  const std::vector<float> plain = gradients([&](const Tensor& x) { return layer(x) + layer(x) + probe(x); });
  CHECK(plain == gradients([&](const Tensor& x) { return checkpoint(layer, x) + checkpoint(layer, x) + probe(x); }));
  CHECK(plain == gradients([&](const Tensor& x) {
          drop_shadow(x);
          return layer(x) + layer(x) + probe(x);
        }));
  const CheckpointPolicy selective = parse_checkpoint_policy("selective:residual_norm");
  const auto once = gradients([&](const Tensor& x) { return layer(x) + probe(x); });
  CHECK(once == gradients([&](const Tensor& x) { return run_layers({layer}, x, selective) + probe(x); }));
}

TEST_CASE("the residual's gradient of gradients is not squeezed through fp16", "[autocast]") {
  const Tensor low = cast(spread({3, 16}, 1), Dtype::f16), seed = affine(spread({3, 16}, 2), 3e5, 0);
  const Tensor residual = leaf({3, 16}, 3);
  const AutocastScope scope(f16_scope);
  const Tensor y = residual_norm(low, {}, residual, {}, {});
  REQUIRE(y.dtype() == Dtype::f32);
  const std::vector<float> fused = values(grad({y}, {residual}, {.retain_graph = true, .seeds = {seed}})[0]);
  const std::vector<float> composed = values(grad({y}, {residual}, {.create_graph = true, .seeds = {seed}})[0]);
  float largest = 0;
  for (float value : fused) largest = std::max(largest, std::abs(value));
  CHECK(largest > 65504);
  for (size_t i = 0; i < fused.size(); ++i)
    CHECK(std::abs(composed[i] - fused[i]) <= 0x1p-11F * largest);  // of the rounded sum
}
