// Exponents of a step: counted exactly, told apart by what they are of, drawn and written beside a run.
#include "cinta/train/exponents.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cinta/autograd/tape.h"
#include "cinta/models/mlp.h"
#include "cinta/ops/reduce.h"
#include "data_helpers.h"
#include "svg.h"
#include "train_helpers.h"

using namespace cinta;
using namespace cinta::testing;
using train::Exponents;

TEST_CASE("exponents are counted, and what a format would lose", "[exponents]") {
  Exponents one;
  one.add(from_values(std::vector<float>{1, 1.99f, -2, 0, -0.0f, INFINITY, NAN, 0x1p-70f, 0x1p60f, 0x1p-10f}, {10}));
  const auto at = [&](int exponent) { return one.counts[static_cast<size_t>(exponent - Exponents::least)]; };
  CHECK(at(0) == 2);
  CHECK(at(1) == 1);
  CHECK(at(-10) == 1);
  CHECK(at(Exponents::least) == 1);  // and all below
  CHECK(at(Exponents::most) == 1);
  CHECK(one.zeros == 2);
  CHECK(one.not_finite == 2);
  CHECK(one.total() == 8);
  CHECK(one.vanishing(-9) == Approx(1 / 8.0));  // 2^-10 is half of the least number, and rounds up or to even
  CHECK(one.vanishing(-8) == Approx(2 / 8.0));
  CHECK(one.saturating(8) == Approx(1 / 8.0));
  CHECK(one.saturating(0) == Approx(2 / 8.0));
}

TEST_CASE("a step's values, gradients and weights are told apart", "[exponents]") {
  models::Mlp model({4, 8, 2}, 1);
  train::ExponentWatch watch(model);
  const Tensor x = from_values(std::vector<float>(12, 0.5f), {3, 4});
  autograd::backward(sum(model(x)));
  const std::vector<Exponents> found = watch.take();
  const auto total = [&](Exponents::Kind kind, const std::string& name) {
    for (const Exponents& one : found)
      if (one.kind == kind && one.name == name) return one.total();
    return int64_t{0};
  };
  CHECK(total(Exponents::forward, "mlp.layers.0") == 3 * 8);
  CHECK(total(Exponents::forward, "mlp.layers.1") == 3 * 2);
  CHECK(total(Exponents::gradient, "mlp.layers.0") == 3 * 8);
  CHECK(total(Exponents::gradient, "mlp.layers.1") == 3 * 2);
  CHECK(total(Exponents::weight, "layers.0.weight") == 4 * 8);
  CHECK(total(Exponents::weight_gradient, "layers.1.weight") == 8 * 2);
  CHECK(found.size() == 8);
  const std::string svg = train::svg_of({{7, found}});
  CHECK(balanced(svg));
  for (const char* part : {"step 7", "gradients of weights", "mlp.layers.1", "f8e4m3", "f8e5m2", "f16"})
    CHECK(svg.find(part) != std::string::npos);
}

TEST_CASE("a run leaves the exponents of its first and its last step, and is the same run", "[exponents]") {
  const Scratch scratch;
  const auto run = [&](const std::string& directory, bool watched) {
    train::RunOptions options = small_run(directory);
    options.max_steps = 4;
    if (watched) options.callbacks.push_back(std::make_shared<train::ExponentReport>());
    auto task = small_masked();
    train::run(task, options, {{"model", std::string("small")}});
    return read_bytes(directory + "/checkpoint-4/model.safetensors");
  };
  CHECK(run(scratch / "watched", true) == run(scratch / "plain", false));
  const auto json = nlohmann::json::parse(read_bytes(scratch / "watched/exponents.json"));
  REQUIRE(json["steps"].size() == 2);
  CHECK(json["steps"][0]["step"] == 1);
  CHECK(json["steps"][1]["step"] == 4);
  CHECK(json["steps"][0]["tensors"].size() == json["steps"][1]["tensors"].size());
  CHECK(json["steps"][0]["tensors"][0]["counts"].size() == Exponents::most - Exponents::least + 1);
  CHECK(balanced(read_bytes(scratch / "watched/exponents.svg")));
}
