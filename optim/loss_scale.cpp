// The state machine is a row (backends/kernels/optimizer.h); here are its memory, its names and its limits.
#include "cinta/optim/loss_scale.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/core/context.h"

namespace cinta::optim {
namespace {

constexpr const char* state_names[] = {"loss_scale", "loss_scale.counts", "loss_scale.found", "loss_scale.options"};

double number(std::string_view text, std::string_view all, Where where) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc{} && end == text.data() + text.size(), "loss_scale", where,
          "a number, dynamic, or dynamic:name=number,.. with initial, growth, backoff, interval, hysteresis, "
          "most_skips; given '",
          all, "'");
  return value;
}

/// "layer.0", or the parameters that it goes from and to.
std::string name_of(const Group& group) {
  const Parameter &first = group.ranges.front().parameter, &last = group.ranges.back().parameter;
  std::string block = first.block;
  while (block.ends_with('.')) block.pop_back();
  if (!block.empty()) return block;
  return group.ranges.size() == 1 ? first.name : join(first.name, " .. ", last.name);
}

const LossScaleOptions& checked(const LossScaleOptions& options, Where where) {
  constexpr const char* name = "loss_scale";
  const auto scale = static_cast<float>(options.initial);
  require(std::isnormal(scale) && scale > 0, name, where, "the scale is positive and finite in f32, given ",
          options.initial);
  const auto growth = static_cast<float>(options.growth), backoff = static_cast<float>(options.backoff);
  require(growth >= 1 && std::isfinite(growth), name, where, "growth is at least 1 and finite in f32, given ",
          options.growth);
  require(backoff > 0 && backoff < 1, name, where, "backoff lies between 0 and 1 in f32, given ", options.backoff);
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

std::string text_of(const LossScaleOptions& options) {
  const auto exact = [](double number) {
    char digits[32];
    return std::string(digits, std::to_chars(digits, std::end(digits), number).ptr);
  };
  if (!options.dynamic) return exact(options.initial);
  return join("dynamic:initial=", exact(options.initial), ",growth=", exact(options.growth),
              ",backoff=", exact(options.backoff), ",interval=", options.interval, ",hysteresis=", options.hysteresis,
              ",most_skips=", options.most_skips);
}

bool LossScaler::owns(std::string_view name) { return std::ranges::find(state_names, name) != std::end(state_names); }

LossScaler::LossScaler(const Optimizer& optimizer, const LossScaleOptions& options, Where where)
    : optimizer_(optimizer), options_(checked(options, where)) {
  for (const Unit& unit : optimizer.units())
    for (const Group& group : unit.groups()) {
      if (group.trained) groups_.push_back(name_of(group));
    }
  const Device device = optimizer.units().front().groups().front().weights.device();
  CategoryScope scope(Category::optimizer);
  scale_ = from_values(std::vector<float>{static_cast<float>(options.initial)}, {1}, device);
  counts_ = from_values(std::vector<int64_t>{0, options.hysteresis, 0, 0}, {4}, device);
  found_ = from_values(std::vector<int64_t>(groups_.size()), {static_cast<int64_t>(groups_.size())}, device);
}

Tensor LossScaler::scaled(const Tensor& seed, Where where) const {
  require<DtypeError>(seed && is_floating(seed.dtype()), "loss_scale", where,
                      "what is scaled is floating-point, given ", seed);
  require<DeviceError>(seed.device() == scale_.device(), "loss_scale", where, "what is scaled lies on ",
                       scale_.device(), ", given ", seed);
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

std::string LossScaler::skipped_in() const {
  const std::vector<int64_t> found = to_vector<int64_t>(found_);
  std::string out;
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i]) out += join(out.empty() ? "" : ", ", groups_[i], " ", found[i]);
  return out;
}

void LossScaler::check(Where where) const {
  const int64_t in_row = to_vector<int64_t>(counts_)[kernels::scale_skipped_in_row];
  require(in_row < options_.most_skips, "loss_scale", where, "the last ", in_row,
          " steps were all skipped, at a loss scale of ", item(scale_), " now: gradients are not finite in ",
          in_row < options_.most_skips ? "" : skipped_in());
}

int64_t LossScaler::skipped() const { return to_vector<int64_t>(counts_)[kernels::scale_skipped]; }

LossScaler::Report LossScaler::report(Where where) {
  check(where);
  Report out{.scale = item(scale_), .skipped = skipped(), .skipped_in = skipped_in()};
  if (!out.skipped_in.empty()) kernels::fill(found_.device(), found_, 0);
  return out;
}

std::vector<NamedTensor> LossScaler::state() const {
  return {{state_names[0], scale_},
          {state_names[1], counts_},
          {state_names[2], found_},
          {state_names[3],
           from_values(std::vector<float>{static_cast<float>(options_.initial), options_.dynamic ? 1.0f : 0}, {2})}};
}

void LossScaler::load_state(const std::vector<NamedTensor>& state, Where where) {
  const std::vector<NamedTensor> live = this->state();
  std::vector<Tensor> saved;
  if (std::ranges::none_of(state, [](const NamedTensor& one) { return owns(one.first); })) return;
  for (const auto& [name, own] : live) {
    const auto is_it = [&name = name](const NamedTensor& one) { return one.first == name; };
    const auto found = std::ranges::find_if(state, is_it);
    const auto count = std::ranges::count_if(state, is_it);
    require(count == 1, "loss_scale", where, "one state called ", name, ", given ", count);
    require<ShapeError>(found->second.shape() == own.shape() && found->second.dtype() == own.dtype(), "loss_scale",
                        where, "state ", name, " is like ", own, ", given ", found->second);
    saved.push_back(found->second);
  }
  const double scale = item(saved[0]);
  require(std::isnormal(static_cast<float>(scale)) && scale > 0, "loss_scale", where,
          "a saved scale is positive and finite, given ", scale);
  const bool same = to_vector<float>(saved[3]) == to_vector<float>(live[3].second);
  const std::vector<int64_t> fresh = to_vector<int64_t>(counts_), counts = to_vector<int64_t>(saved[1]);
  require(counts[0] >= 0 && counts[2] >= 0 && counts[3] >= 0, "loss_scale", where,
          "saved counts of steps are not negative");
  if (same) copy_bytes(scale_, saved[0], where);
  const std::vector<int64_t> merged{same ? counts[0] : fresh[0], same ? counts[1] : fresh[1], counts[2], counts[3]};
  copy_bytes(counts_, from_values(merged, {4}), where);
  copy_bytes(found_, saved[2], where);
}

}  // namespace cinta::optim
