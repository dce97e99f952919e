// The step around a sweep, and state by name.
#include "cinta/optim/optimizer.h"

#include <cmath>
#include <limits>
#include <map>

#include "cinta/autograd/mode.h"
#include "cinta/core/context.h"

namespace cinta::optim {
namespace {

/// Calls f(group) for every trained group, in the order of the units.
template <class Units, class F>
void each_trained(Units& units, F f) {
  for (auto& unit : units)
    for (auto& group : unit.groups())
      if (group.trained) f(group);
}

/// Refuses what no step can be done with, before anything has changed.
void check(const StepOptions& options, const char* op, Device device, Where where) {
  require(options.max_norm.value_or(0) >= 0, op, where,
          "the largest norm is not negative: ", options.max_norm.value_or(0));
  const Tensor& scale = options.loss_scale;
  if (!scale) return;
  constexpr const char *wanted = "the loss scale is f32[1]@", *given = ", given ";
  require<DtypeError>(scale.dtype() == Dtype::f32, op, where, wanted, device, given, scale);
  require<ShapeError>(scale.shape() == Shape{1}, op, where, wanted, device, given, scale);
  require<DeviceError>(scale.device() == device, op, where, wanted, device, given, scale);
}

}  // namespace

Optimizer::Optimizer(std::vector<Parameter> parameters, Rule rule, Where where) : rule_(std::move(rule)) {
  require(std::isfinite(rule_.rate) && rule_.rate >= 0, rule_.name, where,
          "the rate is finite and not negative: ", rule_.rate);
  require(std::isfinite(rule_.weight_decay) && rule_.weight_decay >= 0, rule_.name, where,
          "the weight decay is finite and not negative: ", rule_.weight_decay);
  units_ = make_units(std::move(parameters), where);
  const Device device = units_.front().groups().front().weights.device();
  for (Unit& unit : units_) unit.add_state(rule_.states.size());
  CategoryScope scope(Category::optimizer);
  each_trained(units_, [&](const Group& group) { tables_.push_back(make_table(group)); });
  scalars_ = empty({4}, Dtype::f32, device);
  updates_ = from_values(std::vector<int64_t>{0}, {1}, device);
  norm_.emplace(static_cast<int64_t>(tables_.size()), device);
}

Optimizer::SegmentTable Optimizer::make_table(const Group& group) const {
  std::vector<int64_t> ends;
  std::vector<float> rate_factors, decays;
  for (size_t i = 0; i < group.ranges.size(); ++i) {
    const Parameter& parameter = group.ranges[i].parameter;
    ends.push_back(i + 1 < group.ranges.size() ? group.ranges[i + 1].begin : group.length());
    rate_factors.push_back(parameter.rate_factor);
    decays.push_back(parameter.decay ? static_cast<float>(rule_.weight_decay) : 0.0f);
  }
  const Shape shape{static_cast<int64_t>(ends.size())};
  const Device device = group.weights.device();
  return {from_values(ends, shape, device), from_values(rate_factors, shape, device),
          from_values(decays, shape, device)};
}

Tensor Optimizer::step(const StepOptions& options, Where where) {
  const autograd::Phase phase("optimizer");
  const double rate = checked_rate(options.rate_factor, where);
  check(options, rule_.name, scalars_.device(), where);
  collect_gradients(where);
  begin_step(rate);
  return run_rows(options);
}

void Optimizer::prepare(double rate_factor, Where where) {
  begin_step(checked_rate(rate_factor, where));
  prepared_ = true;
  for (Unit& unit : units_) unit.renew_shadows();
}

Tensor Optimizer::update(const StepOptions& options, Where where) {
  const autograd::Phase phase("optimizer");
  require(options.rate_factor == 1, rule_.name, where,
          "prepare() is given the rate's factor, not update(): ", options.rate_factor);
  check(options, rule_.name, scalars_.device(), where);
  require_preparation(where);
  prepared_ = false;
  collect_gradients(where);
  const Tensor norm = run_rows(options);
  context().repeat([this, where] { require_preparation(where); },
                   [this] {
                     mark_written();
                     prepared_ = false;
                   });
  return norm;
}

void Optimizer::require_preparation(Where where) const {
  require(prepared_, rule_.name, where,
          "prepare() comes before each update() and each of its replays: this one would have the rate of the step "
          "before");
}

double Optimizer::checked_rate(double rate_factor, Where where) const {
  const double rate = rule_.rate * rate_factor;
  require(std::isfinite(rate) && rate >= 0, rule_.name, where, "the rate of step ", steps_,
          " is finite and not negative: ", rule_.rate, " * ", rate_factor);
  return rate;
}

void Optimizer::begin_step(double rate) {
  copy_bytes(scalars_, from_values(std::vector<float>{static_cast<float>(rate), 1, 1, 1}, scalars_.shape()));
  ++steps_;
}

void Optimizer::collect_gradients(Where where) {
  for (Unit& unit : units_) unit.collect_gradients(where);
}

Tensor Optimizer::run_rows(const StepOptions& options) {
  Tensor norm;
  if (options.max_norm || options.loss_scale)
    norm = norm_->measure(units_, scalars_, options.loss_scale, static_cast<float>(options.max_norm.value_or(0)));
  kernels::count_update(scalars_.device(), scalars_, updates_, rule_.beta1, rule_.beta2);
  auto table = tables_.begin();
  each_trained(units_, [&](const Group& group) {
    sweep(group, {table->ends, table->rate_factors, table->decays}, scalars_);
    ++table;
  });
  mark_written();
  return norm;
}

void Optimizer::mark_written() {
  for (Unit& unit : units_) unit.mark_written(rule_.name);
}

void Optimizer::keep_shadows(Dtype dtype, Where where) {
  require<DtypeError>(dtype == Dtype::bf16 || dtype == Dtype::f16, rule_.name, where, "a shadow is bf16 or f16, given ",
                      dtype);
  for (Unit& unit : units_) unit.add_shadows(dtype);
}

void Optimizer::zero_gradients() {
  for (Unit& unit : units_) unit.zero_gradients();
}

std::vector<NamedTensor> Optimizer::slices() const {
  std::vector<NamedTensor> out;
  each_trained(units_, [&](const Group& group) {
    for (const Range& range : group.ranges)
      for (size_t i = 0; i < rule_.states.size(); ++i)
        out.emplace_back(range.parameter.name + '.' + rule_.states[i], Group::slice(group.state[i], range));
  });
  return out;
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> out = slices();
  out.emplace_back("step", from_values(std::vector<int64_t>{steps_}, {}));
  out.emplace_back("updates", updates_);
  return out;
}

void Optimizer::load_state(const std::vector<NamedTensor>& state, Where where) {
  std::map<std::string, Tensor> given;
  for (const auto& [name, tensor] : state)
    require(tensor && given.emplace(name, tensor).second, rule_.name, where, "state is a tensor, given once: ", name);
  const auto find = [&](const std::string& name, const Shape& shape, Dtype dtype) {
    const auto found = given.find(name);
    require(found != given.end(), rule_.name, where, "state is missing: ", name);
    const Tensor tensor = found->second;
    require<ShapeError>(tensor.shape() == shape && tensor.contiguous(), rule_.name, where, "state ", name,
                        " is contiguous, of shape ", shape, ": ", tensor);
    require<DtypeError>(tensor.dtype() == dtype, rule_.name, where, "state ", name, " is ", dtype, ": ", tensor);
    given.erase(found);
    return tensor;
  };
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const auto& [name, live] : slices()) copies.emplace_back(live, find(name, live.shape(), live.dtype()));
  const int64_t steps = to_vector<int64_t>(find("step", {}, Dtype::i64))[0];
  require(steps >= 0 && steps < std::numeric_limits<int64_t>::max(), rule_.name, where,
          "steps are not negative and can be counted on: ", steps);
  const int64_t updates = to_vector<int64_t>(find("updates", {1}, Dtype::i64))[0];
  require(updates >= 0 && updates <= steps, rule_.name, where, "updates are between 0 and the ", steps,
          " steps: ", updates);
  require(given.empty(), rule_.name, where, "unknown state: ", given.empty() ? "" : given.begin()->first.c_str());
  for (const auto& [live, saved] : copies) copy_bytes(live, saved, where);
  copy_bytes(updates_, from_values(std::vector<int64_t>{updates}, {1}));
  steps_ = steps;
}

}  // namespace cinta::optim
