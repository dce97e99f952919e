// Ten steps of PyTorch's optimizers and the schedules of Hugging Face, against tests/golden/optim.txt, which
// tests/interop/optim.py wrote from the same formulas.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>

#include "cinta/optim/adamw.h"
#include "cinta/optim/schedule.h"
#include "cinta/optim/sgd.h"
#include "optim_helpers.h"

using namespace cinta;
using namespace cinta::testing;
using namespace cinta::optim;

namespace {

constexpr int64_t steps = 10, rows = 3, columns = 5;

/// Of the golden file: what follows each line that begins with `kind`, by the rest of that line.
std::map<std::string, std::map<std::string, std::vector<double>>> golden(const std::string& kind) {
  std::ifstream file(CINTA_SOURCE_DIR "/tests/golden/optim.txt");
  REQUIRE(file);
  std::map<std::string, std::map<std::string, std::vector<double>>> out;
  std::map<std::string, std::vector<double>>* open = nullptr;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string head;
    words >> head;
    if (head == "optimizer" || head == "schedule") {
      open = head == kind ? &out[line.substr(head.size() + 1)] : nullptr;
    } else if (open) {
      for (double value; words >> value;) (*open)[head].push_back(value);
    }
  }
  REQUIRE_FALSE(out.empty());
  return out;
}

std::vector<double> gradient_of(int64_t count, double phase, int64_t step) {
  return sequence(count, [&](double i) {
    return std::cos(phase + 1.3 * i + 0.7 * static_cast<double>(step)) *
           std::ldexp(1.0, static_cast<int>(step % 4) - 2);
  });
}

struct Case {
  std::function<std::unique_ptr<Optimizer>(std::vector<Parameter>)> make;
  std::optional<double> max_norm;
  double largest_update;  ///< bound of one step's change of a weight
};

Case sgd_case(const SgdOptions& options, std::optional<double> max_norm = {}) {
  const double gradient = 2 + options.weight_decay;
  return {[=](auto p) { return std::make_unique<Sgd>(std::move(p), options); }, max_norm,
          options.rate * gradient / (1 - options.momentum)};
}

Case adamw_case(const AdamWOptions& options, std::optional<double> max_norm = {}) {
  const double step = (1 - options.beta1) / std::sqrt(1 - options.beta2);  // when a gradient comes after none
  return {[=](auto p) { return std::make_unique<AdamW>(std::move(p), options); }, max_norm,
          options.rate * (std::max(1.0, step) + options.weight_decay)};
}

const std::map<std::string, Case>& cases() {
  static const std::map<std::string, Case> all = {
      {"sgd", sgd_case({.rate = 0.05})},
      {"sgd_decay_clip", sgd_case({.rate = 0.05, .weight_decay = 0.1}, 1.0)},
      {"sgd_momentum", sgd_case({.rate = 0.05, .momentum = 0.9, .weight_decay = 0.1})},
      {"sgd_nesterov", sgd_case({.rate = 0.05, .momentum = 0.8, .weight_decay = 0.1, .nesterov = true}, 0.5)},
      {"adamw", adamw_case({.rate = 1e-2, .weight_decay = 0.1})},
      {"adamw_plain", adamw_case({.rate = 1e-3, .weight_decay = 0})},
      {"adamw_betas_eps_clip",
       adamw_case({.rate = 2e-2, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.3}, 0.7)},
  };
  return all;
}

void compare(const std::string& name, const Tensor& got, const std::vector<double>& expected, double tolerance) {
  INFO(name);
  const auto values = to_vector<double>(got);
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i) CHECK(std::abs(values[i] - expected[i]) <= tolerance);
}

void run(const std::string& name, const std::map<std::string, std::vector<double>>& expected, Dtype dtype,
         Device device) {
  INFO(name << " " << name_of(dtype) << " on " << name_of(device));
  const Case& c = cases().at(name);
  Tensor weight =
      leaf(sequence(rows * columns, [](double i) { return std::sin(1 + i); }), {rows, columns}, dtype, device);
  Tensor bias = leaf(sequence(columns, [](double i) { return std::sin(2 + i); }), {columns}, dtype, device);
  const auto optimizer = c.make({{"weight", weight}, {"bias", bias, false, 0.5f}});
  for (int64_t step = 0; step < steps; ++step) {
    set_gradient(weight, gradient_of(rows * columns, 3, step));
    set_gradient(bias, gradient_of(columns, 4, step));
    const Tensor norm = optimizer->step({.max_norm = c.max_norm});
    if (c.max_norm)
      CHECK(item(norm) == Approx(expected.at("norms")[static_cast<size_t>(step)]).epsilon(0x1p-22).margin(0));
    else
      CHECK_FALSE(norm);
  }
  // Rate, clip factor, corrections and decay are f32 for every type: four roundings of each update. In f32 the weight
  // itself, below 1, is rounded by decay and update in every step, and once at the start.
  constexpr double half_ulp = 0x1p-24;
  const double updates = steps * 4 * half_ulp * c.largest_update;
  const double tolerance = dtype == Dtype::f64 ? updates : updates + (2 * steps + 1) * half_ulp;
  compare("weight", weight, expected.at("weight"), tolerance);
  compare("bias", bias, expected.at("bias"), tolerance);
  size_t states = 0;
  for (const auto& [key, tensor] : optimizer->state()) {
    if (key == "step" || key == "updates") continue;
    ++states;
    double largest = 0;
    for (const double value : expected.at(key)) largest = std::max(largest, std::abs(value));
    compare(key, tensor, expected.at(key), steps * 4 * half_ulp * std::max(largest, c.largest_update));
  }
  CHECK(states + 2 + (c.max_norm ? 1 : 0) == expected.size());
}

}  // namespace

TEST_CASE("ten steps of each optimizer are PyTorch's", "[optim]") {
  for (const auto& [name, expected] : golden("optimizer")) {
    REQUIRE(cases().contains(name));
    run(name, expected, Dtype::f64, reference);
    run(name, expected, Dtype::f32, reference);
    run(name, expected, Dtype::f32, cpu);
  }
}

TEST_CASE("schedules are those of Hugging Face", "[optim]") {
  for (const auto& [line, expected] : golden("schedule")) {
    INFO(line);
    std::istringstream words(line);
    std::string kind;
    Schedule schedule;
    words >> kind >> schedule.warmup >> schedule.total >> schedule.power >> schedule.end_factor;
    schedule.kind = parse_schedule(kind);
    CHECK(name_of(schedule.kind) == kind);
    check(schedule);
    const auto& factors = expected.at("factors");
    REQUIRE(static_cast<int64_t>(factors.size()) == schedule.total + 1);
    for (size_t step = 0; step < factors.size(); ++step)
      CHECK(std::abs(rate_factor(schedule, static_cast<int64_t>(step)) - factors[step]) <= 4 * 0x1p-53);
    if (schedule.kind != ScheduleKind::constant && schedule.kind != ScheduleKind::inverse_sqrt)
      CHECK(rate_factor(schedule, schedule.total + 1000) == rate_factor(schedule, schedule.total));
  }
}
