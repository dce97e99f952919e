// Autocast: which op computes in which type, what a leaf's gradient is, shadows that never grow stale, and whole models
// whose recomputed steps are those that were stored.
#include "cinta/autograd/autocast.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "autocast_helpers.h"
#include "cinta/autograd/checkpoint.h"
#include "cinta/autograd/tape.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/core/context.h"
#include "cinta/core/random.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/attention.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/embedding.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/normalize.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "cinta/ops/softmax.h"
#include "cinta/optim/adamw.h"
#include "cinta/optim/sgd.h"
#include "data_helpers.h"

using namespace cinta;
using namespace cinta::autograd;
using namespace cinta::testing;

TEST_CASE("each op is presented with the types of its policy", "[autocast]") {
  const Tensor x = spread({4, 6}, 1), w = leaf({6, 6}, 2), gain = leaf({6}, 3), wide = spread({4, 6}, 4),
               exact = cast(spread({4, 6}, 1, reference), Dtype::f64),
               whole = from_values(std::vector<int64_t>{0, 3, 1, 5}, {4});
  CHECK(linear(x, w).dtype() == Dtype::f32);
  {
    const AutocastScope scope(bf16_scope);
    const Tensor low = linear(x, w);
    CHECK(low.dtype() == Dtype::bf16);
    CHECK(matmul(x, w).dtype() == Dtype::bf16);
    CHECK(embedding(w, whole).dtype() == Dtype::f32);     // where a residual begins
    CHECK(layer_norm(low, gain).dtype() == Dtype::bf16);  // follow what they normalise, and the residual
    CHECK(layer_norm(x, gain).dtype() == Dtype::f32);
    CHECK(residual_norm(low, {}, low, gain, {}).dtype() == Dtype::bf16);
    CHECK(residual_norm(low, {}, x, gain, {}).dtype() == Dtype::f32);
    CHECK(gelu(low).dtype() == Dtype::bf16);  // promotes: one type stays
    CHECK((low + low).dtype() == Dtype::bf16);
    CHECK((low + wide).dtype() == Dtype::f32);  // two do not
    CHECK(concat({low, wide}, 0).dtype() == Dtype::f32);
    CHECK(where(less(x, wide), low, wide).dtype() == Dtype::f32);
    CHECK(softmax(low).dtype() == Dtype::f32);
    for (const Tensor& y :
         {exp(low), log(low), sqrt(low), rsqrt(low), pow(low, 2), erf(low), softplus(low), log_softmax(low), low / low})
      CHECK(y.dtype() == Dtype::f32);
    CHECK(rms_norm(x, gain).dtype() == Dtype::f32);
    CHECK(gather_rows(w, whole).dtype() == Dtype::f32);
    CHECK(embedding_sum(w, w, w, reshape(whole, {1, 4})).dtype() == Dtype::f32);
    CHECK(self_attention(spread({1, 4, 6}, 6), 1).dtype() == Dtype::bf16);
    CHECK(sum(low).dtype() == Dtype::f32);
    CHECK(cross_entropy(low, whole).dtype() == Dtype::f32);
    CHECK(mse(low, wide).dtype() == Dtype::f32);
    CHECK(mse(low, low).dtype() == Dtype::f32);
    CHECK(var(low).dtype() == Dtype::f32);
    CHECK(reshape(x, {24}).dtype() == Dtype::f32);  // none
    CHECK(matmul(exact, transpose(exact, 0, 1)).dtype() == Dtype::f64);
    CHECK(cast(low, Dtype::f32).dtype() == Dtype::f32);
    {
      const AutocastScope inner(f16_scope);
      CHECK(linear(low, w).dtype() == Dtype::f16);
      const AutocastScope off(std::nullopt);
      CHECK(linear(wide, w).dtype() == Dtype::f32);
      CHECK_THROWS_AS(linear(low, w), DtypeError);  // two types, as without any scope
    }
    CHECK(linear(x, w).dtype() == Dtype::bf16);
    CHECK_THROWS_AS(linear(x, spread({6, 5}, 5)), ShapeError);
    CHECK_THROWS_AS(matmul(exact, leaf({6, 6}, 2, reference)), DtypeError);
  }
  CHECK(linear(x, w).dtype() == Dtype::f32);
  CHECK_THAT(error_of<DtypeError>([] { AutocastScope(Autocast{.low = Dtype::f8e4m3}); }),
             Catch::Contains("the low type is bf16 or f16, and f32 with TF32, given f8e4m3"));
  CHECK_THAT(error_of<ValueError>([] {
               AutocastScope(Autocast{.modules = {{"net", CastPolicy::none}}});
             }),
             Catch::Contains("a module's policy is low, follow, wide or promote: net"));
  CHECK(cast_policy("linear") == CastPolicy::low);
  CHECK(cast_policy("hardswish") == CastPolicy::promote);
}

TEST_CASE("modules by path have a policy of their own", "[autocast]") {
  const Tensor x = spread({4, 6}, 1), w = leaf({6, 6}, 2);
  const AutocastScope scope(
      Autocast{.modules = {{"net.first"}, {"net.low", CastPolicy::low}, {"net.own", CastPolicy::promote}}});
  CHECK(linear(x, w).dtype() == Dtype::bf16);
  const NameScope net("net");
  CHECK(linear(x, w).dtype() == Dtype::bf16);
  {
    const NameScope first("first");
    CHECK(linear(x, w).dtype() == Dtype::f32);
    CHECK(gelu(cast(x, Dtype::bf16)).dtype() == Dtype::f32);
    const NameScope inner("dense");
    CHECK(linear(x, w).dtype() == Dtype::f32);
  }
  {
    const NameScope low("low");
    CHECK(linear(x, w).dtype() == Dtype::bf16);
    CHECK(softmax(x).dtype() == Dtype::bf16);
    CHECK((x + x).dtype() == Dtype::bf16);
    CHECK(reshape(x, {24}).dtype() == Dtype::f32);  // none stays none
  }
  {
    const NameScope own("own");
    CHECK(linear(x, w).dtype() == Dtype::f32);  // both are
    CHECK(linear(cast(x, Dtype::bf16), cast(w, Dtype::bf16)).dtype() == Dtype::bf16);
    CHECK(softmax(cast(x, Dtype::bf16)).dtype() == Dtype::bf16);
  }
  const NameScope other("first_of_all");
  CHECK(linear(x, w).dtype() == Dtype::bf16);
}

TEST_CASE("a product is that of the rounded operands, and a leaf's gradient arrives in f32", "[autocast]") {
  for (const Autocast& types : {bf16_scope, f16_scope})
    for (Device device : {cpu, reference}) {
      const Tensor x = leaf({5, 7}, 1, device), w = leaf({3, 7}, 2, device), b = leaf({3}, 3, device);
      const Tensor dy = cast(spread({5, 3}, 4, device), types.low);
      Tensor y;
      {
        const AutocastScope scope(types);
        y = linear(x, w, b);
      }
      const Tensor x_low = cast(detach(x), types.low), w_low = cast(detach(w), types.low),
                   b_low = cast(detach(b), types.low);
      CHECK(values(y) == values(linear(x_low, w_low, b_low)));
      backward(y, {.seeds = {dy}});
      for (const Tensor* one : {&x, &w, &b}) CHECK(gradient(*one).dtype() == Dtype::f32);
      // The sums are stored as they are, not rounded to the low type and widened again.
      Tensor dw = empty({3, 7}, Dtype::f32, device), dx = empty({5, 7}, Dtype::f32, device);
      kernels::matmul(device, dw, transpose(dy, 0, 1), x_low, 1, 0);
      kernels::matmul(device, dx, dy, w_low, 1, 0);
      CHECK(values(gradient(w)) == values(dw));
      CHECK(values(gradient(x)) == values(dx));
      CHECK(values(gradient(b)) == values(sum(cast(dy, Dtype::f32), {0})));
      backward(y =
                   [&] {
                     const AutocastScope scope(types);
                     return linear(x, w, b);
                   }(),
               {.seeds = {dy}});
      CHECK(values(gradient(w)) == values(dw + dw));  // a second micro-batch adds in f32
    }
}

TEST_CASE("uses of one weight as a table and in a product are summed in f32", "[autocast]") {
  const Tensor table = leaf({9, 8}, 1), ids = from_values(std::vector<int64_t>{1, 4, 1}, {3});
  const auto run = [&] {
    const AutocastScope scope(bf16_scope);
    return sum(linear(embedding(table, ids), table));
  };
  backward(run());
  const Tensor low = cast(detach(table), Dtype::bf16);
  Tensor once = low;
  require_gradient(once);
  Tensor twice = cast(detach(table), Dtype::bf16);
  require_gradient(twice);
  backward(sum(cast(linear(embedding(once, ids), twice), Dtype::f32)));
  REQUIRE(gradient(table).dtype() == Dtype::f32);
  const std::vector<float> both = values(gradient(table)), first = values(gradient(once)),
                           second = values(gradient(twice));
  for (size_t i = 0; i < both.size(); ++i)
    CHECK(std::abs(both[i] - first[i] - second[i]) <= 0x1p-7 * (std::abs(first[i]) + std::abs(second[i])));
  size_t wider = 0;
  for (float value : both) wider += value != float{bf16(value)};
  CHECK(wider > 0);
}

TEST_CASE("gradient rules run as their tensors come, inside a scope too", "[autocast]") {
  const auto gradient_of = [](bool inside) {
    const Tensor w = leaf({6, 6}, 2);
    std::optional<AutocastScope> scope;
    scope.emplace(bf16_scope);
    const Tensor loss = sum(linear(spread({4, 6}, 1), w) * gelu(linear(spread({1, 6}, 3), w)));
    if (!inside) scope.reset();
    backward(loss);
    return values(gradient(w));
  };
  CHECK(gradient_of(true) == gradient_of(false));
}

TEST_CASE("a weight is cast once until it is written", "[autocast]") {
  Casts casts;
  const Scoped watching(&Mode::observer, static_cast<Observer*>(&casts));
  const Tensor w = leaf({6, 6}, 2), x = cast(spread({4, 6}, 1), Dtype::bf16);
  casts.count = 0;
  const AutocastScope scope(bf16_scope);
  const Tensor before = linear(x, w);
  const Storage* shadow = w.storage()->shadow.storage.get();
  CHECK(values(linear(x, w)) == values(before));
  CHECK(w.storage()->shadow.storage.get() == shadow);
  CHECK(casts.count == 0);  // the tape sees none
  {
    const NoGrad off;
    scale_(w, 2);
  }
  CHECK(values(linear(x, w)) == values(affine(before, 2, 0)));  // exact: a power of two
  CHECK(w.storage()->shadow.storage.get() == shadow);
  // What was kept for backward is not to be read in another state.
  const Tensor late = linear(x, w);
  {
    const NoGrad off;
    scale_(w, 2);
  }
  const Tensor again = linear(x, w);
  CHECK_THAT(error_of<ValueError>([&] { backward(late, {.seeds = {late}}); }),
             Catch::Contains("was overwritten in place by autocast"));
}

TEST_CASE("the optimizer's sweep writes the shadows of the weights", "[autocast]") {
  for (Dtype low : {Dtype::bf16, Dtype::f16})
    for (bool adamw : {true, false}) {
      const Tensor w = leaf({70, 30}, 1), frozen = spread({5}, 3);
      const std::vector<optim::Parameter> parameters{{.name = "w", .tensor = w}, {.name = "frozen", .tensor = frozen}};
      std::unique_ptr<optim::Optimizer> optimizer;
      if (adamw)
        optimizer = std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.rate = 0.1});
      else
        optimizer = std::make_unique<optim::Sgd>(parameters, optim::SgdOptions{.rate = 0.1, .momentum = 0.5});
      optimizer->keep_shadows(low);
      const auto shadow = [&](const Tensor& x) {
        return Tensor(x.storage()->shadow.storage, x.shape(), x.strides(), 0, low);
      };
      const auto current = [&](const Tensor& x) { return x.storage()->shadow.version == x.storage()->version(); };
      CHECK(current(frozen));
      CHECK(values(shadow(frozen)) == values(cast(frozen, low)));
      for (int step = 0; step < 3; ++step) {
        optimizer->zero_gradients();
        backward(sum(detach(spread({70, 30}, 7)) * w));
        optimizer->step({.max_norm = 0});
        CHECK(current(w));
        CHECK(values(shadow(w)) == values(cast(detach(w), low)));
      }
      // A step that is skipped leaves both, and one that was out of date is still known to be.
      const std::vector<float> kept = values(w);
      optimizer->zero_gradients();
      backward(sum(w * full({}, NAN)));
      optimizer->step({.max_norm = 0});
      CHECK(values(w) == kept);
      CHECK(current(w));
      {
        const NoGrad off;
        fill_(w, 3);
      }
      optimizer->step({.max_norm = 0});
      CHECK_FALSE(current(w));
      const AutocastScope scope(Autocast{.low = low});
      CHECK(values(linear(spread({1, 30}, 9), w))[0] ==
            values(linear(spread({1, 30}, 9), cast(full({70, 30}, 3), low)))[0]);
      CHECK_THROWS_AS(optimizer->keep_shadows(Dtype::f8e5m2), DtypeError);
    }
}

TEST_CASE("what a recomputed segment read may not change before its backward, in low precision too", "[autocast]") {
  const Tensor w = leaf({6, 6}, 1), frozen = spread({6, 6}, 2);
  for (int which = 0; which < 3; ++which) {
    INFO(which);
    const Tensor x = spread({4, 6}, 3);
    const Tensor changed = which == 0 ? x : which == 1 ? w : frozen;
    Tensor y;
    {
      const AutocastScope scope(bf16_scope);
      y = checkpoint_segment([&](std::span<const Tensor>) { return std::vector<Tensor>{linear(linear(x, w), frozen)}; },
                             std::vector<Tensor>{})[0];
    }
    {
      const NoGrad off;
      scale_(changed, 2);
    }
    CHECK_THAT(error_of<ValueError>([&] { backward(y, {.seeds = {detach(y)}}); }),
               Catch::Contains("was overwritten in place by scale_"));
  }
}

TEST_CASE("a sweep over shadows that were out of date is noticed by what was saved", "[autocast]") {
  const Tensor w = leaf({6, 6}, 1);
  Tensor x = leaf({4, 6}, 2);
  optim::Sgd optimizer({{.name = "w", .tensor = w}});
  optimizer.keep_shadows(Dtype::bf16);
  const auto forward = [&](const Autocast& types) {
    const AutocastScope scope(types);
    return linear(x, w);
  };
  const Tensor late = forward(bf16_scope);
  {
    const NoGrad off;
    scale_(w, 1);
  }
  optimizer.zero_gradients();
  backward(sum(w));
  optimizer.step();
  CHECK_THAT(error_of<ValueError>([&] { backward(late, {.seeds = {detach(late)}}); }),
             Catch::Contains("was overwritten in place by sgd"));
  // A use in another type takes the seat of the optimizer's shadow for one step.
  const Storage* own = w.storage()->shadow.storage.get();
  forward(f16_scope);
  CHECK(w.storage()->shadow.storage.get() != own);
  optimizer.zero_gradients();
  backward(sum(w));
  optimizer.step();
  CHECK(w.storage()->shadow.storage.get() == own);
  CHECK(values(forward(bf16_scope)) == values(linear(cast(detach(x), Dtype::bf16), cast(detach(w), Dtype::bf16))));
}

TEST_CASE("squares of f16 numbers do not overflow on the way to a mean", "[autocast]") {
  const Tensor far = cast(full({4}, 300), Dtype::f16), near = cast(full({4}, -300), Dtype::f16);
  const AutocastScope scope(f16_scope);
  CHECK(item(mse(far, near)) == 360000);
  CHECK(item(var(concat({far, near}, 0), {}, 0)) == 90000);
}

TEST_CASE("gradients of gradients of norms in fp16 are those of the fused rows", "[autocast]") {
  const Tensor gain = full({16}, 1);
  for (bool rms : {false, true}) {
    Tensor x = affine(spread({3, 16}, 1), 300, 0);
    require_gradient(x);
    const AutocastScope scope(f16_scope);
    const Tensor low = cast(x, Dtype::f16);
    const Tensor y = rms ? rms_norm(low, gain) : layer_norm(low, gain), seed = cast(spread({3, 16}, 2), Dtype::f16);
    const std::vector<float> fused = values(grad({y}, {x}, {.retain_graph = true, .seeds = {seed}})[0]);
    const std::vector<float> composed = values(grad({y}, {x}, {.create_graph = true, .seeds = {seed}})[0]);
    for (size_t i = 0; i < fused.size(); ++i)
      CHECK(std::abs(composed[i] - fused[i]) <= 0x1p-7 * std::abs(fused[i]) + 1e-5);
  }
}
