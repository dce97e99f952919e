// The contract tests' own test: kernels with one fault each, and that each fault is seen.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/reduce.h"
#include "cinta/core/context.h"
#include "contract/contract.h"

using namespace cinta;
using namespace cinta::contract;
using Catch::Matchers::Contains;

namespace {

/// y = 2 x + 1 as it should be, and then `fault` on what a real kernel was given (f32; the exact result is f64).
std::string verdict_on(void (*fault)(View y, View x, Status* status), Layout layout = Layout::dense,
                       Dtype dtype = Dtype::f32) {
  Trial trial(kernels::affine.forward);
  const Handle x = trial.input({7, 9}, dtype, uniform(63, 1, 3), layout), y = trial.output({7, 9}, dtype, layout);
  return trial.verdict(
      [&](const Call& c) {
        kernels::affine.forward(c.device, c(y), c(x), {2, 1});
        if (c(y).dtype != Dtype::f64) fault(c(y), c(x), static_cast<Status*>(c.status));
      },
      reference);
}

}  // namespace

TEST_CASE("a right kernel passes", "[kernel_contract]") {
  for (Layout layout : any_layout) CHECK(verdict_on([](View, View, Status*) {}, layout) == "");
}

TEST_CASE("wrong numbers are seen", "[kernel_contract]") {
  CHECK_THAT(verdict_on([](View y, View, Status*) { y.as<float>()[40] *= 1.00001f; }), Contains("element 40 is"));
  CHECK_THAT(verdict_on([](View y, View, Status*) { y.as<float>()[62] = NAN; }), Contains("element 62 is nan"));
  CHECK_THAT(verdict_on([](View y, View, Status*) { y.as<float>()[0] = -y.as<float>()[0]; }), Contains("element 0 is"));
  // One step of bf16 away.
  CHECK_THAT(verdict_on([](View y, View, Status*) { ++y.as<bf16>()[3].bits; }, Layout::dense, Dtype::bf16),
             Contains("element 3 is"));
}

TEST_CASE("writes outside the output are seen", "[kernel_contract]") {
  CHECK_THAT(verdict_on([](View y, View, Status*) { y.as<float>()[-1] = 0; }), Contains("byte -4 beside"));
  CHECK_THAT(verdict_on([](View y, View, Status*) { y.as<float>()[63] = 0; }), Contains("byte 252 beside"));
  CHECK_THAT(verdict_on([](View y, View, Status*) { y.as<float>()[9] = 0; }, Layout::padded),
             Contains("byte 36 beside"));
  CHECK_THAT(verdict_on([](View, View x, Status*) { x.as<float>()[5] = 0; }), Contains("an input was overwritten"));
}

TEST_CASE("an element that was not written is seen", "[kernel_contract]") {
  CHECK_THAT(verdict_on([](View y, View, Status*) { std::fill_n(y.as<uint8_t>() + 62 * 4, 4, uint8_t{0xff}); }),
             Contains("element 62 is"));
}

TEST_CASE("a result that depends on the number of threads is seen", "[kernel_contract]") {
  // The second run differs by one step of f32, far inside the tolerance.
  static int runs = 0;
  CHECK(verdict_on([](View y, View, Status*) {
          if (++runs == 2) y.as<float>()[7] = std::nextafter(y.as<float>()[7], 0.0f);
        }) == "1 and 2 threads differ");
}

TEST_CASE("a report of a bad index must come when it should and only then", "[kernel_contract]") {
  CHECK(verdict_on([](View, View, Status* status) {
          *status = {Status::index_out_of_range, 1, 2, 3};
        }) == "a bad index was reported");
  Trial trial(kernels::affine.forward);
  const Handle y = trial.output({1}, Dtype::f32);
  CHECK(trial.verdict([&](const Call& c) { kernels::fill(c.device, c(y), 0); }, reference, true) ==
        "a bad index was not reported");
}

TEST_CASE("reading the old output with beta 0 is seen", "[kernel_contract]") {
  Trial trial(kernels::sum);
  const Handle x = trial.input({8}, Dtype::f32, uniform(8, 1, 2)), y = trial.output({1}, Dtype::f32);
  CHECK_THAT(trial.verdict(
                 [&](const Call& c) {
                   const float old = c(y).dtype == Dtype::f32 ? *c(y).as<float>() * 0 : 0;
                   kernels::sum(c.device, c(y), c(x), 0);
                   if (c(y).dtype == Dtype::f32) *c(y).as<float>() += old;
                 },
                 reference),
             Contains("nan"));
}
