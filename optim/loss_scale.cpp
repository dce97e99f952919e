// The state machine is a row (backends/kernels/optimizer.h); here are its memory, its names and its limits.
#include "cinta/optim/loss_scale.h"

#include <charconv>
#include <cmath>

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/core/context.h"

namespace cinta::optim {
namespace {

double number(std::string_view text, std::string_view all, Where where) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc{} && end == text.data() + text.size(), "loss_scale", where,
          "a number, dynamic, or dynamic:name=number,.. with initial, growth, backoff, interval, hysteresis, "
          "most_skips; given '",
          all, "'");
  return value;
}

const LossScaleOptions& checked(const LossScaleOptions& options, Where where) {
  constexpr const char* name = "loss_scale";
  const auto scale = static_cast<float>(options.initial);
  require(std::isnormal(scale) && scale > 0, name, where, "the scale is positive and finite in f32, given ",
          options.initial);
  require(options.growth >= 1 && std::isfinite(options.growth), name, where, "growth is at least 1, given ",
          options.growth);
  require(options.backoff > 0 && options.backoff < 1, name, where, "backoff lies between 0 and 1, given ",
          options.backoff);
  require(options.interval >= 1, name, where, "the interval is at least one step, given ", options.interval);
  require(options.hysteresis >= 1, name, where, "hysteresis is at least one overflow, given ", options.hysteresis);
  require(options.most_skips >= 1, name, where, "most_skips is at least 1, given ", options.most_skips);
  return options;
}

}  // namespace

LossScaleOptions parse_loss_scale(std::string_view text, Where where) {
  const size_t colon = text.find(':');
  if (text.substr(0, colon) != "dynamic") return checked({.initial = number(text, text, where)}, where);
  LossScaleOptions out{.initial = 65536, .dynamic = true};
  for (size_t begin = colon; begin < text.size();) {
    const size_t end = std::min(text.find(',', ++begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    const double value = number(equals == part.npos ? "" : part.substr(equals + 1), text, where);
    double* real = name == "initial"   ? &out.initial
                   : name == "growth"  ? &out.growth
                   : name == "backoff" ? &out.backoff
                                       : nullptr;
    int64_t* count = name == "interval"     ? &out.interval
                     : name == "hysteresis" ? &out.hysteresis
                     : name == "most_skips" ? &out.most_skips
                                            : nullptr;
    require(real || (count && value == std::floor(value) && std::abs(value) < 1e15), "loss_scale", where,
            "initial, growth, backoff, or a whole number of interval, hysteresis, most_skips; given '", part, "'");
    if (real)
      *real = value;
    else
      *count = static_cast<int64_t>(value);
    begin = end;
  }
  return checked(out, where);
}

LossScaler::LossScaler(const Optimizer& optimizer, const LossScaleOptions& options, Where where)
    : optimizer_(optimizer), options_(checked(options, where)) {
  for (const Unit& unit : optimizer.units())
    for (const Group& group : unit.groups()) {
      const Parameter& first = group.ranges.front().parameter;
      if (group.trained) groups_.push_back(first.block.empty() ? first.name : first.block);
    }
  const Device device = optimizer.units().front().groups().front().weights.device();
  CategoryScope scope(Category::optimizer);
  scale_ = from_values(std::vector<float>{static_cast<float>(options.initial)}, {1}, device);
  counts_ = from_values(std::vector<int64_t>{0, options.hysteresis, 0, 0}, {4}, device);
  found_ = from_values(std::vector<int64_t>(groups_.size()), {static_cast<int64_t>(groups_.size())}, device);
}

Tensor LossScaler::scaled(const Tensor& seed) const {
  Tensor out = empty_like(seed);
  View scale = scale_.with_layout(seed.shape(), Shape::filled(seed.rank(), 0), 0);
  kernels::multiply(seed.device(), out, seed, scale);
  return out;
}

void LossScaler::update() {
  kernels::update_loss_scale(scale_.device(), scale_, counts_, found_, optimizer_.squares(),
                             {.dynamic = options_.dynamic,
                              .growth = static_cast<float>(options_.growth),
                              .backoff = static_cast<float>(options_.backoff),
                              .interval = options_.interval,
                              .hysteresis = options_.hysteresis});
}

LossScaler::Report LossScaler::report(Where where) {
  const std::vector<int64_t> counts = to_vector<int64_t>(counts_), found = to_vector<int64_t>(found_);
  Report out{.scale = item(scale_), .skipped = counts[kernels::scale_skipped], .skipped_in = {}};
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i]) out.skipped_in += join(out.skipped_in.empty() ? "" : ", ", groups_[i], " ", found[i]);
  require(counts[kernels::scale_skipped_in_row] < options_.most_skips, "loss_scale", where, "the last ",
          counts[kernels::scale_skipped_in_row], " steps were all skipped, at a loss scale of ", out.scale,
          " now: gradients are not finite in ", out.skipped_in);
  kernels::fill(found_.device(), found_, 0);
  return out;
}

std::vector<NamedTensor> LossScaler::state() const {
  return {{"loss_scale", scale_}, {"loss_scale.counts", counts_}, {"loss_scale.found", found_}};
}

void LossScaler::load_state(const std::vector<NamedTensor>& state, Where where) {
  for (const auto& [name, live] : this->state())
    for (const auto& [given, saved] : state) {
      if (given != name) continue;
      require<ShapeError>(saved.shape() == live.shape() && saved.dtype() == live.dtype(), "loss_scale", where, "state ",
                          name, " is like ", live, ", given ", saved);
      copy_bytes(live, saved, where);
    }
}

}  // namespace cinta::optim
