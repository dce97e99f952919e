// The index of a sharded model: read as strictly as the headers of its files, and written.
#include "cinta/data/safetensors_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cinta/data/safetensors_header.h"
#include "cinta/data/sharded_safetensors.h"
#include "cinta/data/strict_json.h"

namespace cinta::data {
namespace {

using Json = nlohmann::json;

/// What is wrong with `name` as the name of a file beside the index, or an empty view.
std::string_view shard_name_fault(std::string_view name) {
  if (name.find_first_of("/\\") != name.npos) return "has a slash";
  if (name.starts_with('.')) return "begins with a dot";
  if (!name.ends_with(".safetensors")) return "does not end in .safetensors";
  return safetensors_name_fault(name);
}

}  // namespace

SafetensorsIndex parse_safetensors_index(std::string_view text, std::string_view file, Where where) {
  const FileComplaint complain{file, where};
  const Json json = parse_json(text, "safetensors", file, where);
  if (!json.is_object()) complain("found ", json.type_name(), ", expected an object with metadata and weight_map");
  for (const auto& [key, value] : json.items()) {
    if (key != "metadata" && key != "weight_map")
      complain("found the key '", printable(key), "', expected metadata and weight_map");
    if (!value.is_object()) complain(key, ": found ", value.type_name(), ", expected an object");
  }
  SafetensorsIndex index;
  if (const Json size = json.value(Json::json_pointer("/metadata/total_size"), Json()); !size.is_null()) {
    if (!size.is_number_unsigned())
      complain("metadata: total_size: found ", printable(size.dump()), ", expected a number of bytes");
    index.total_size = size.get<uint64_t>();
  }
  if (!json.contains("weight_map")) complain("found no weight_map, expected an object: tensor -> file");
  for (const auto& [tensor, shard] : json["weight_map"].items()) {
    const std::string at = "weight_map: '" + printable(tensor) + "': ";
    if (!shard.is_string()) complain(at, "found ", shard.type_name(), ", expected the name of a file");
    const auto& name = shard.get_ref<const std::string&>();
    if (const auto fault = shard_name_fault(name); !fault.empty())
      complain(at, "found '", printable(name), "', which ", fault, "; expected a .safetensors file beside the index");
    index.shards[tensor] = name;
  }
  return index;
}

std::vector<Shard> deal_shards(const std::vector<uint64_t>& sizes, uint64_t most_bytes) {
  std::vector<Shard> shards;
  uint64_t filled = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (shards.empty() || sizes[i] > most_bytes - std::min(filled, most_bytes)) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().tensors.push_back(i);
    filled += sizes[i];
  }
  if (shards.empty()) shards.emplace_back();  // a model without tensors is a file too
  const auto number = [](size_t count) {
    const std::string digits = std::to_string(count);
    return std::string(5 - std::min<size_t>(5, digits.size()), '0') + digits;
  };
  for (size_t i = 0; i < shards.size(); ++i)
    shards[i].name = "model-" + number(i + 1) + "-of-" + number(shards.size()) + ".safetensors";
  return shards;
}

std::string safetensors_index_text(const std::vector<Shard>& shards, const std::vector<std::string>& names,
                                   uint64_t total_size) {
  Json map = Json::object();
  for (const Shard& shard : shards)
    for (size_t tensor : shard.tensors) map[names[tensor]] = shard.name;
  return Json{{"metadata", {{"total_size", total_size}}}, {"weight_map", map}}.dump(2) + "\n";
}

}  // namespace cinta::data
