// Matching a model's names with a file's.
#include "cinta/models/model_file.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cinta/autograd/mode.h"
#include "cinta/data/file.h"
#include "cinta/data/sharded_safetensors.h"
#include "cinta/data/strict_json.h"
#include "cinta/models/bert/names.h"
#include "cinta/ops/shape.h"

namespace cinta::models {
namespace {

using Entries = std::map<std::string, const data::StoredTensor*>;

/// The files' tensors under the present names.
Entries present_entries(const data::SafetensorsSet& files, Where where) {
  Entries out;
  for (const data::StoredTensor& tensor : files.tensors()) {
    const auto [other, first] = out.emplace(present_name(tensor.entry->name), &tensor);
    require<FileError>(first, "load", where, files.path(), ": ", other->second->entry->name, " and ",
                       tensor.entry->name, " are one tensor of the model");
  }
  return out;
}

/// The entry of the model's tensor `name`: as it stands, with "bert." before it, or without; null when there is none.
const data::StoredTensor* find(const Entries& entries, const std::string& name, const std::string& path, Where where) {
  const data::StoredTensor* out = nullptr;
  for (const std::string& candidate : {name, "bert." + name, name.starts_with("bert.") ? name.substr(5) : name}) {
    const auto found = entries.find(candidate);
    if (found == entries.end() || found->second == out) continue;
    require<FileError>(!out, "load", where, path, ": ", out ? out->entry->name : "", " and ",
                       found->second->entry->name, " are one tensor of the model");
    out = found->second;
  }
  return out;
}

/// Copies in other files of tensors that the model ties or computes: never missed, never reported.
bool is_derived(const std::string& name) {
  return name == "cls.predictions.decoder.weight" || name == "cls.predictions.decoder.bias" ||
         name.ends_with("embeddings.position_ids");
}

bool starts_with_one_of(const std::string& name, const std::vector<std::string>& prefixes) {
  return std::ranges::any_of(prefixes, [&](const std::string& prefix) { return name.starts_with(prefix); });
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

void write_tensors(const std::vector<NamedTensor>& tensors, data::ByteSink& sink, Where where) {
  std::vector<Tensor> hold;
  data::write_safetensors(sink, file_tensors(tensors, hold), {{"format", "pt"}}, where);
}

void save_weights(const Module& module, const std::string& path, Where where) {
  std::vector<Tensor> hold;
  data::save_safetensors(path, file_tensors(module.named_tensors(), hold), {{"format", "pt"}}, where);
}

std::string model_name(const std::string& directory, Where where) {
  const std::string path = directory + "/config.json";
  const std::string name = model_name_in(data::read_file(path, data::maximum_file_bytes, where), path, where);
  require<FileError>(!name.empty(), "config", where, path, ": has neither architectures nor a model_type");
  return name;
}

std::string model_name_in(const std::string& text, const std::string& path, Where where) {
  const nlohmann::json config = data::parse_json_object(text, "config", path, where);
  const nlohmann::json classes = config.value("architectures", nlohmann::json());
  const nlohmann::json name = classes.is_array() && !classes.empty() ? classes[0] : config.value("model_type", classes);
  const bool names_none = name.is_null() || (name.is_array() && name.empty());
  require<FileError>(names_none || name.is_string(), "config", where, path, ": architectures or model_type is no name");
  return names_none ? "" : name;
}

std::string LoadReport::text() const {
  std::string out = join(loaded.size(), " tensors loaded");
  for (const std::string& name : missing) out += "\nmissing, left as initialised: " + name;
  for (const std::string& name : unused) out += "\nunused: " + name;
  return out;
}

LoadReport load_weights(Module& module, const std::string& path, const std::vector<std::string>& optional_prefixes,
                        const std::vector<std::string>& new_prefixes, Where where) {
  autograd::NoGrad off;
  const data::SafetensorsSet files = data::SafetensorsSet::open(path, where);
  const Entries entries = present_entries(files, where);

  LoadReport report;
  std::vector<std::pair<Tensor, const data::StoredTensor*>> plan;
  std::vector<std::string> faults;
  for (const NamedTensor& named : module.named_tensors()) {
    const bool is_new = starts_with_one_of(named.name, new_prefixes);
    const data::StoredTensor* stored = is_new ? nullptr : find(entries, named.name, files.path(), where);
    if (!stored) {
      if (is_new || starts_with_one_of(named.name, optional_prefixes))
        report.missing.push_back(named.name);
      else
        faults.push_back(join("the model's tensor ", named.name, " ", named.tensor, " is not in the file"));
      continue;
    }
    const data::SafetensorsEntry& entry = *stored->entry;
    if (shape_of(entry) != named.tensor.shape())
      faults.push_back(
          join(named.name, " has shape ", shape_of(entry), " in the file, ", named.tensor.shape(), " in the model"));
    else if (!is_floating(entry.dtype))
      faults.push_back(join(named.name, " is ", entry.dtype, ", not floating-point"));
    plan.emplace_back(named.tensor, stored);
    report.loaded.push_back(named.name);
  }
  require<FileError>(faults.empty(), "load", where, files.path(), ": ", listed(faults));
  for (const auto& [name, stored] : entries)
    if (!is_derived(name) && std::ranges::none_of(plan, [&](const auto& item) { return item.second == stored; }))
      report.unused.push_back(name);

  for (const auto& [destination, stored] : plan) {
    const Tensor read = stored->tensor(where);
    copy_(destination, to(cast(read, destination.dtype()), destination.device()));
  }
  return report;
}

}  // namespace cinta::models
