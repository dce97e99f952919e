// Checking, laying out and moving parameters into flat buffers.
#include "cinta/optim/unit.h"

#include <cmath>
#include <map>
#include <set>

#include "cinta/autograd/node.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/reduce.h"
#include "cinta/core/context.h"

namespace cinta::optim {
namespace {

Tensor zeros(int64_t length, const Tensor& like, Category category) {
  CategoryScope scope(category);
  Tensor out = empty({length}, like.dtype(), like.device());
  kernels::fill(out.device(), out, 0.0);
  return out;
}

int64_t rounded_up(int64_t count) { return (count + alignment - 1) / alignment * alignment; }

bool is_finite(const Tensor& weights) {
  const Tensor squares = empty({1}, Dtype::f64, weights.device());
  kernels::sum_of_squares(weights.device(), squares, weights);
  return std::isfinite(item(squares));
}

/// Moves the gradient of range number i to its slice of the flat ones.
void adopt_gradient(Group& group, size_t i) {
  autograd::Slot& slot = *group.ranges[i].parameter.tensor.slot;
  const Tensor& place = group.gradients->slice(i);
  kernels::copy(place.device(), place, slot.gradient);
  slot.gradient = place;
}

Group flatten(std::vector<Parameter> parameters) {
  Group group;
  const Tensor& first = parameters.front().tensor;
  group.trained = autograd::tracked(first);
  int64_t length = 0;
  for (Parameter& parameter : parameters) {
    group.ranges.push_back({std::move(parameter), length});
    length += rounded_up(group.ranges.back().parameter.tensor.numel());
  }
  const Tensor like = group.ranges.front().parameter.tensor;
  group.weights = zeros(length, like, Category::weights);
  if (group.trained) group.gradients = std::make_shared<FlatGradients>(length, like.dtype(), like.device());
  const int64_t width = size_of(like.dtype());
  for (Range& range : group.ranges) {
    const Tensor& tensor = range.parameter.tensor;
    copy_bytes(Group::slice(group.weights, range), tensor);
    tensor.storage()->rebind(group.weights.storage(), range.begin * width);
    if (group.trained) group.gradients->add(range.begin, tensor.shape());
  }
  for (size_t i = 0; group.trained && i < group.ranges.size(); ++i) {
    autograd::Slot& slot = *group.ranges[i].parameter.tensor.slot;
    slot.home = FlatGradients::home(group.gradients, i);
    if (slot.has_gradient)
      adopt_gradient(group, i);
    else
      slot.gradient = {};
  }
  return group;
}

void check(const Parameter& parameter, Device device, Where where) {
  const Tensor& tensor = parameter.tensor;
  require(static_cast<bool>(tensor), "optim", where, "parameter ", parameter.name, " has a tensor");
  require(!tensor.slot || tensor.slot->leaf, "optim", where,
          "a parameter is a leaf, not the result of an op: ", parameter.name, " ", tensor);
  require<DtypeError>(!tensor.slot || tensor.dtype() == Dtype::f32 || tensor.dtype() == Dtype::f64, "optim", where,
                      "a trained parameter is f32 or f64: ", parameter.name, " ", tensor);
  require<DeviceError>(tensor.device() == device, "optim", where, "all parameters are on ", device, ": ",
                       parameter.name, " ", tensor);
  require(tensor.contiguous() && tensor.offset() == 0 && tensor.bytes() == tensor.storage()->bytes(), "optim", where,
          "a parameter is contiguous and has its storage to itself: ", parameter.name, " ", tensor, " in a storage of ",
          tensor.storage()->bytes(), " bytes");
  require(std::isfinite(parameter.rate_factor) && parameter.rate_factor >= 0, "optim", where,
          "a rate factor is finite and not negative: ", parameter.name, " ", parameter.rate_factor);
}

}  // namespace

Tensor Group::slice(const Tensor& flat, const Range& range) {
  const Shape& shape = range.parameter.tensor.shape();
  return flat.with_layout(shape, contiguous_strides(shape), range.begin);
}

Unit::Unit(std::vector<Parameter> parameters) {
  std::map<std::pair<Dtype, bool>, std::vector<Parameter>> kinds;
  for (Parameter& parameter : parameters) {
    const std::pair kind{parameter.tensor.dtype(), autograd::tracked(parameter.tensor)};
    kinds[kind].push_back(std::move(parameter));
  }
  for (auto& [kind, members] : kinds) groups_.push_back(flatten(std::move(members)));
}

void Unit::collect_gradients(Where where) {
  for (Group& group : groups_) {
    if (!group.trained) continue;
    if (context().captures()) group.gradients->stay();
    const auto* base = static_cast<const char*>(group.weights.view().data);
    for (size_t i = 0; i < group.ranges.size(); ++i) {
      const Range& range = group.ranges[i];
      const Tensor &tensor = range.parameter.tensor, &place = group.gradients->slice(i);
      require(tensor.view().data == base + range.begin * size_of(tensor.dtype()), "optim", where, "parameter ",
              range.parameter.name, " belongs to this optimizer: it was moved into another one made later");
      autograd::Slot& slot = *tensor.slot;
      if (!slot.asked_for_gradient())
        kernels::fill(place.device(), place, 0.0);
      else if (slot.gradient.storage() != place.storage())
        adopt_gradient(group, i);
    }
  }
}

void Unit::zero_gradients() {
  for (Group& group : groups_) {
    if (!group.trained) continue;
    const bool gone = group.gradients->give_back();
    for (size_t i = 0; i < group.ranges.size(); ++i) {
      const Tensor& tensor = group.ranges[i].parameter.tensor;
      tensor.slot->gradient = gone ? Tensor() : group.gradients->slice(i);
      autograd::clear_gradient(tensor);
    }
  }
}

void Unit::add_state(size_t count) {
  for (Group& group : groups_)
    for (size_t i = 0; group.trained && i < count; ++i)
      group.state.push_back(zeros(group.length(), group.weights, Category::optimizer));
}

void Unit::add_shadows(Dtype dtype) {
  const int64_t width = size_of(dtype);
  for (Group& group : groups_) {
    if (group.weights.dtype() != Dtype::f32) continue;
    CategoryScope scope(Category::weights);
    group.shadow = empty({group.length()}, dtype, group.weights.device());
    kernels::copy(group.weights.device(), group.shadow, group.weights);
    for (Range& range : group.ranges) {
      const Tensor& tensor = range.parameter.tensor;
      Storage& storage = *tensor.storage();
      range.shadow = std::make_shared<Storage>(group.shadow.storage(), range.begin * width, tensor.numel() * width);
      storage.shadow = {range.shadow, dtype, storage.version()};
    }
  }
}

void Unit::renew_shadows() {
  for (Group& group : groups_)
    for (const Range& range : group.ranges) {
      const Tensor& weights = range.parameter.tensor;
      Shadow& shadow = weights.storage()->shadow;
      const uint32_t version = weights.storage()->version();
      if (!range.shadow || (shadow.storage == range.shadow && shadow.version == version)) continue;
      kernels::copy(weights.device(), Group::slice(group.shadow, range), weights);
      range.shadow->mark_written("autocast");
      shadow = {range.shadow, group.shadow.dtype(), version};
    }
}

void Unit::mark_written(const char* writer) {
  for (Group& group : groups_) {
    if (!group.trained) continue;
    for (const Range& range : group.ranges) {
      Storage& storage = *range.parameter.tensor.storage();
      Shadow& shadow = storage.shadow;
      // One that was out of date stays so: a step that is skipped writes neither.
      const bool current = shadow.storage && shadow.storage == range.shadow && shadow.version == storage.version();
      storage.mark_written(writer);
      if (!range.shadow) continue;
      range.shadow->mark_written(writer);
      const uint32_t other_version = storage.version() - 1;
      shadow = {range.shadow, group.shadow.dtype(), current ? storage.version() : other_version};
    }
  }
}

const Range* first_not_finite(const std::vector<Unit>& units) {
  for (const Unit& unit : units)
    for (const Group& group : unit.groups()) {
      if (!group.trained || is_finite(group.weights)) continue;
      for (const Range& range : group.ranges)
        if (!is_finite(Group::slice(group.weights, range))) return &range;
    }
  return nullptr;
}

std::vector<Unit> make_units(std::vector<Parameter> parameters, Where where) {
  require(!parameters.empty(), "optim", where, "at least one parameter");
  require(static_cast<bool>(parameters.front().tensor), "optim", where, "parameter ", parameters.front().name,
          " has a tensor");
  const Device device = parameters.front().tensor.device();
  std::set<std::string_view> names;
  std::map<const Storage*, const Parameter*> owners;
  std::vector<std::string> blocks;
  std::map<std::string_view, std::vector<Parameter>> members;
  for (const Parameter& parameter : parameters) {
    check(parameter, device, where);
    require(names.insert(parameter.name).second, "optim", where, "names are unique, given twice: ", parameter.name);
    const auto [owner, first] = owners.emplace(parameter.tensor.storage().get(), &parameter);
    require(first || owner->second->tensor.slot == parameter.tensor.slot, "optim", where, "tied parameters ",
            owner->second->name, " and ", parameter.name, " are copies of one handle");
    if (!first) continue;
    auto& block = members[parameter.block];
    if (block.empty()) blocks.push_back(parameter.block);
    block.push_back(parameter);
  }
  std::vector<Unit> units;
  for (const std::string& block : blocks) units.emplace_back(std::move(members[block]));
  return units;
}

}  // namespace cinta::optim
