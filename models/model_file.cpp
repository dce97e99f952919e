// Matching a model's names with a file's.
#include "cinta/models/model_file.h"

#include <algorithm>
#include <map>

#include "cinta/autograd/mode.h"
#include "cinta/ops/shape.h"

namespace cinta::models {
namespace {

/// The present name of a tensor that an old file calls otherwise.
std::string modern_name(const std::string& name) {
  auto ends = [&](std::string_view old, std::string_view now) {
    return name.ends_with(old) ? name.substr(0, name.size() - old.size()) + std::string(now) : std::string();
  };
  for (const std::string& renamed :
       {ends("LayerNorm.gamma", "LayerNorm.weight"), ends("LayerNorm.beta", "LayerNorm.bias")})
    if (!renamed.empty()) return renamed;
  return name;
}

using Entries = std::map<std::string, const data::SafetensorsEntry*>;

/// The file's entries under the present names.
Entries modern_entries(const data::SafetensorsFile& file, Where where) {
  Entries out;
  for (const data::SafetensorsEntry& entry : file.entries()) {
    const auto [other, first] = out.emplace(modern_name(entry.name), &entry);
    require<FileError>(first, "load", where, file.path(), ": ", other->second->name, " and ", entry.name,
                       " are one tensor of the model");
  }
  return out;
}

/// The entry of the model's tensor `name`: as it stands, with "bert." before it, or without; null when there is none.
const data::SafetensorsEntry* find(const Entries& entries, const std::string& name, const std::string& path,
                                   Where where) {
  const data::SafetensorsEntry* out = nullptr;
  for (const std::string& candidate : {name, "bert." + name, name.starts_with("bert.") ? name.substr(5) : name}) {
    const auto found = entries.find(candidate);
    if (found == entries.end() || found->second == out) continue;
    require<FileError>(!out, "load", where, path, ": ", out ? out->name : "", " and ", found->second->name,
                       " are one tensor of the model");
    out = found->second;
  }
  return out;
}

/// Copies in other files of tensors that the model ties or computes: never missed, never reported.
bool is_derived(const std::string& name) {
  return name == "cls.predictions.decoder.weight" || name == "cls.predictions.decoder.bias" ||
         name.ends_with("embeddings.position_ids");
}

Shape shape_of(const data::SafetensorsEntry& entry) { return Shape(std::span<const int64_t>(entry.shape)); }

/// All faults in one line, or the first of many and how many more there are.
std::string listed(const std::vector<std::string>& faults) {
  constexpr size_t most = 12;
  std::string out;
  for (size_t i = 0; i < std::min(faults.size(), most); ++i) out += (i ? "; " : "") + faults[i];
  return faults.size() > most ? join(out, "; and ", faults.size() - most, " more") : out;
}

}  // namespace

std::vector<data::TensorBytes> file_tensors(const std::vector<NamedTensor>& tensors, std::vector<Tensor>& hold) {
  autograd::NoGrad off;
  std::vector<data::TensorBytes> out;
  for (const NamedTensor& named : tensors) {
    const Tensor plain = to(contiguous(detach(named.tensor)), cpu);
    hold.push_back(plain);
    out.push_back({named.name, plain.dtype(), {plain.shape().begin(), plain.shape().end()}, plain.view().data});
  }
  return out;
}

void save_weights(const Module& module, const std::string& path, Where where) {
  std::vector<Tensor> hold;
  data::save_safetensors(path, file_tensors(module.named_tensors(), hold), {{"format", "pt"}}, where);
}

std::string LoadReport::text() const {
  std::string out = join(loaded.size(), " tensors loaded");
  for (const std::string& name : missing) out += "\nmissing, left as initialised: " + name;
  for (const std::string& name : unused) out += "\nunused: " + name;
  return out;
}

LoadReport load_weights(Module& module, const std::string& path, const std::vector<std::string>& optional_prefixes,
                        Where where) {
  autograd::NoGrad off;
  const data::SafetensorsFile file = data::SafetensorsFile::open(path, where);
  const Entries entries = modern_entries(file, where);

  LoadReport report;
  std::vector<std::pair<Tensor, const data::SafetensorsEntry*>> plan;
  std::vector<std::string> faults;
  for (const NamedTensor& named : module.named_tensors()) {
    const data::SafetensorsEntry* entry = find(entries, named.name, path, where);
    if (!entry) {
      const bool optional = std::ranges::any_of(
          optional_prefixes, [&](const std::string& prefix) { return named.name.starts_with(prefix); });
      if (optional)
        report.missing.push_back(named.name);
      else
        faults.push_back(join("the model's tensor ", named.name, " ", named.tensor, " is not in the file"));
      continue;
    }
    if (shape_of(*entry) != named.tensor.shape())
      faults.push_back(
          join(named.name, " has shape ", shape_of(*entry), " in the file, ", named.tensor.shape(), " in the model"));
    else if (!is_floating(entry->dtype))
      faults.push_back(join(named.name, " is ", entry->dtype, ", not floating-point"));
    plan.emplace_back(named.tensor, entry);
    report.loaded.push_back(named.name);
  }
  require<FileError>(faults.empty(), "load", where, path, ": ", listed(faults));
  for (const auto& [name, entry] : entries)
    if (!is_derived(name) && std::ranges::none_of(plan, [&](const auto& item) { return item.second == entry; }))
      report.unused.push_back(name);

  for (const auto& [destination, entry] : plan) {
    const Tensor read = empty(shape_of(*entry), entry->dtype, cpu);
    file.read(*entry, read.view().data, where);
    copy_(destination, to(cast(read, destination.dtype()), destination.device()));
  }
  return report;
}

}  // namespace cinta::models
