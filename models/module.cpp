// Walking a tree of modules: names, initial values, modes.
#include "cinta/models/module.h"

#include <algorithm>

#include "cinta/autograd/mode.h"
#include "cinta/core/context.h"
#include "cinta/core/random.h"
#include "cinta/ops/shape.h"

namespace cinta::models {
namespace {

/// Element `i` of the parameter called `name`.
float initial_value(Init init, uint64_t seed, uint32_t stream, uint64_t i) {
  switch (init.kind) {
    case Init::zeros:
      return 0;
    case Init::ones:
      return 1;
    case Init::normal:
      return static_cast<float>(init.scale * random_normal(seed, stream, 0, i));
    case Init::uniform:
      break;
  }
  return static_cast<float>(init.scale * (2.0 * to_uniform(random_word(seed, stream, 0, i)) - 1.0));
}

}  // namespace

template <class Visit>
void Module::walk(const std::string& path, const std::string& block, Visit&& visit) const {
  const std::string own_block = block_ ? path : block;
  visit(path, own_block, *this);
  for (const Child& child : children_) child.module->walk(path + child.name + ".", own_block, visit);
}

std::vector<optim::Parameter> Module::parameters() const {
  std::vector<optim::Parameter> out;
  walk("", "", [&](const std::string& path, const std::string& block, const Module& module) {
    for (const Entry& entry : module.entries_)
      out.push_back(
          {.name = path + entry.name, .tensor = *entry.tensor, .decay = entry.tensor->rank() > 1, .block = block});
  });
  return out;
}

std::vector<NamedTensor> Module::named_tensors() const {
  std::vector<NamedTensor> out;
  walk("", "", [&](const std::string& path, const std::string&, const Module& module) {
    for (const Entry& entry : module.entries_) {
      const Tensor plain = detach(*entry.tensor);
      if (entry.parts.empty()) out.push_back({path + entry.name, plain});
      int64_t row = 0;
      for (const Part& part : entry.parts) {
        out.push_back({path + part.name, slice(plain, 0, row, row + part.rows)});
        row += part.rows;
      }
    }
  });
  return out;
}

std::vector<Module::Tied> Module::tied_parameters() const {
  const auto same = [](const Tensor& a, const Tensor& b) {
    return a.storage() == b.storage() && a.offset() == b.offset() && a.shape() == b.shape() &&
           a.strides() == b.strides();
  };
  std::vector<Tied> out;
  walk("", "", [&](const std::string& path, const std::string&, const Module& module) {
    for (const Entry& entry : module.entries_) {
      auto found = std::ranges::find_if(out, [&](const Tied& one) { return same(*one.handles[0], *entry.tensor); });
      if (found == out.end()) found = out.insert(out.end(), Tied());
      found->paths.push_back(path + entry.name);
      found->handles.push_back(entry.tensor);
    }
  });
  return out;
}

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const Tied& one : tied_parameters()) count += one.handles[0]->numel();
  return count;
}

void Module::initialize(uint64_t seed) {
  autograd::NoGrad off;
  walk("", "", [&](const std::string& path, const std::string&, const Module& module) {
    for (const Entry& entry : module.entries_) {
      if (entry.tensor->device().backend == meta.backend) continue;
      std::vector<float> values;
      values.reserve(static_cast<size_t>(entry.tensor->numel()));
      std::vector<Part> parts = entry.parts;
      if (parts.empty()) parts = {{entry.name, entry.tensor->shape()[0]}};
      const int64_t row = entry.tensor->numel() / std::max<int64_t>(1, entry.tensor->shape()[0]);
      for (const Part& part : parts) {
        const uint32_t stream = stream_id(path + part.name);
        for (int64_t i = 0; i < part.rows * row; ++i)
          values.push_back(initial_value(entry.init, seed, stream, static_cast<uint64_t>(i)));
      }
      copy_(*entry.tensor, cinta::to(from_values(values, entry.tensor->shape()), entry.tensor->device()));
    }
  });
}

void Module::train(bool on) {
  walk("", "", [&](const std::string&, const std::string&, const Module& module) {
    const_cast<Module&>(module).training_ = on;
  });
}

void Module::to(Device device) {
  CategoryScope weights(Category::weights);
  for (const Tied& one : tied_parameters()) {
    if (one.handles[0]->device() == device) continue;
    const Tensor moved = cinta::to(detach(*one.handles[0]), device);
    std::shared_ptr<autograd::Slot> slot;
    for (Tensor* handle : one.handles) {
      const std::shared_ptr<autograd::Slot> before = handle->slot;
      *handle = moved;
      if (!before) continue;
      handle->slot = slot;
      autograd::require_gradient(*handle);
      if (!slot) handle->slot->hooks = before->hooks;
      slot = handle->slot;
    }
  }
}

int Module::set_trainable(std::string_view path, bool trainable) {
  const auto covers = [&](std::string_view whole) {
    return whole.starts_with(path) &&
           (path.empty() || path.ends_with('.') || path.size() == whole.size() || whole[path.size()] == '.');
  };
  int changed = 0;
  for (const Tied& one : tied_parameters()) {
    if (!std::ranges::any_of(one.paths, covers)) continue;
    const auto tracked =
        std::ranges::find_if(one.handles, [](const Tensor* handle) { return handle->slot != nullptr; });
    std::shared_ptr<autograd::Slot> slot = trainable && tracked != one.handles.end() ? (*tracked)->slot : nullptr;
    for (Tensor* handle : one.handles) {
      handle->slot = slot;
      if (trainable) slot = autograd::require_gradient(*handle).slot;
    }
    ++changed;
  }
  return changed;
}

void Module::add_parameter(Tensor& member, std::string name, const Shape& shape, Init init, Device device,
                           std::vector<Part> parts) {
  CategoryScope weights(Category::weights);
  member = empty(shape, Dtype::f32, device);
  autograd::require_gradient(member);
  entries_.push_back({std::move(name), &member, init, std::move(parts)});
}

void Module::add_child(std::string name, Module& child) { children_.push_back({std::move(name), &child}); }

}  // namespace cinta::models
