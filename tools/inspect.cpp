// `cinta inspect FILE|DIRECTORY [--diff OTHER]`: what tensors lie in safetensors files, and what numbers in them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cinta/data/atomic_file.h"
#include "tools/commands.h"
#include "tools/tensor_numbers.h"

namespace cinta::tools {
namespace {

using data::SafetensorsEntry;
using data::SafetensorsSet;
using data::StoredTensor;
using Json = nlohmann::ordered_json;

int64_t parameters_of(const SafetensorsEntry& entry) {
  return static_cast<int64_t>(entry.size_bytes()) / size_of(entry.dtype);
}

void print(const Json& json) {
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());  // paths may be no UTF-8
}

std::string shape_text(const SafetensorsEntry& entry) {
  std::string out = "[";
  for (int64_t dim : entry.shape) out += (out.size() > 1 ? "," : "") + std::to_string(dim);
  return out + "]";
}

/// The tensors by name. Names are unique in a file and in an index.
std::map<std::string, const StoredTensor*> by_name(const SafetensorsSet& set) {
  std::map<std::string, const StoredTensor*> out;
  for (const StoredTensor& tensor : set.tensors()) out.emplace(tensor.entry->name, &tensor);
  return out;
}

int name_width(const std::map<std::string, const StoredTensor*>& tensors) {
  size_t width = 4;
  for (const auto& [name, tensor] : tensors) width = std::max(width, name.size());
  return static_cast<int>(std::min<size_t>(width, 72));
}

Json tensor_json(const SafetensorsEntry& entry, const Statistics& numbers) {
  return {{"name", entry.name},
          {"shape", entry.shape},
          {"dtype", name_of(entry.dtype)},
          {"parameters", parameters_of(entry)},
          {"bytes", entry.size_bytes()},
          {"mean", numbers.mean},
          {"std", numbers.deviation},
          {"min", numbers.least},
          {"max", numbers.greatest},
          {"nan", numbers.nan},
          {"infinite", numbers.infinite}};
}

void inspect(const std::string& path, bool as_json) {
  const SafetensorsSet set = SafetensorsSet::open(path, Where());
  const auto tensors = by_name(set);
  const int width = name_width(tensors);
  int64_t parameters = 0, nan = 0, infinite = 0;
  uint64_t bytes = 0;
  std::map<std::string, int64_t> dtypes;
  Json rows = Json::array();
  if (!as_json)
    std::printf("%-*s %-16s %-10s %12s %13s %11s %11s %11s %11s\n", width, "name", "shape", "dtype", "parameters",
                "bytes", "mean", "std", "min", "max");
  for (const auto& [name, tensor] : tensors) {
    const SafetensorsEntry& entry = *tensor->entry;
    TensorNumbers values(read_row(*tensor));
    const Statistics numbers = statistics_of(values);
    parameters += parameters_of(entry);
    bytes += entry.size_bytes();
    nan += numbers.nan;
    infinite += numbers.infinite;
    dtypes[std::string(name_of(entry.dtype))] += parameters_of(entry);
    if (as_json) {
      rows.push_back(tensor_json(entry, numbers));
      continue;
    }
    std::printf("%-*s %-16s %-10s %12lld %13llu", width, name.c_str(), shape_text(entry).c_str(),
                std::string(name_of(entry.dtype)).c_str(), static_cast<long long>(parameters_of(entry)),
                static_cast<unsigned long long>(entry.size_bytes()));
    for (double number : {numbers.mean, numbers.deviation, numbers.least, numbers.greatest})
      std::printf(std::isnan(number) ? "           -" : " %11.4g", number);
    if (numbers.nan) std::printf("  %lld NaN", static_cast<long long>(numbers.nan));
    if (numbers.infinite) std::printf("  %lld infinite", static_cast<long long>(numbers.infinite));
    std::printf("\n");
  }
  Json files = Json::array();
  for (const data::SafetensorsFile& file : set.files()) files.push_back(data::name_of_path(file.path()));
  if (as_json) {
    Json metadata = Json::object();
    for (const auto& [key, value] : set.files().empty() ? data::Metadata() : set.files().front().metadata())
      metadata[key] = value;
    const Json totals = {{"tensors", tensors.size()}, {"parameters", parameters},     {"bytes", bytes}, {"nan", nan},
                         {"infinite", infinite},      {"parameters_of_dtype", dtypes}};
    const Json all = {
        {"path", set.path()}, {"files", files}, {"metadata", metadata}, {"tensors", rows}, {"totals", totals}};
    print(all);
    return;
  }
  std::printf("%zu tensors in %zu file%s, %lld parameters (", tensors.size(), files.size(),
              files.size() == 1 ? "" : "s", static_cast<long long>(parameters));
  for (const char* comma = ""; const auto& [dtype, count] : dtypes) {
    std::printf("%s%s %lld", comma, dtype.c_str(), static_cast<long long>(count));
    comma = ", ";
  }
  std::printf("), %llu bytes, %lld NaN, %lld infinite\n", static_cast<unsigned long long>(bytes),
              static_cast<long long>(nan), static_cast<long long>(infinite));
}

/// What tells two models apart: tensors of one alone, other shapes and types, and how far the numbers lie apart.
void show_difference(const std::string& path, const std::string& other_path, bool as_json) {
  const SafetensorsSet set = SafetensorsSet::open(path, Where()), other = SafetensorsSet::open(other_path, Where());
  const auto here = by_name(set), there = by_name(other);
  Json only[2] = {Json::array(), Json::array()}, shapes = Json::array(), dtypes = Json::array(), values = Json::array();
  for (const auto& [name, tensor] : there)
    if (!here.contains(name)) only[1].push_back(name);
  Distance greatest;
  int64_t equal = 0;
  for (const auto& [name, tensor] : here) {
    const auto found = there.find(name);
    if (found == there.end()) {
      only[0].push_back(name);
      continue;
    }
    const SafetensorsEntry &left = *tensor->entry, &right = *found->second->entry;
    if (left.dtype != right.dtype)
      dtypes.push_back({{"name", name}, {"here", name_of(left.dtype)}, {"there", name_of(right.dtype)}});
    if (left.shape != right.shape) {
      shapes.push_back({{"name", name}, {"here", left.shape}, {"there", right.shape}});
      continue;
    }
    TensorNumbers one(read_row(*tensor)), two(read_row(*found->second));
    Distance distance = distance_of(one, two);
    if (left.dtype == right.dtype && !is_floating(left.dtype) && !same_bytes(*tensor, *found->second))
      distance.greatest = std::max(distance.greatest, 1.0);
    greatest.greatest = std::max(greatest.greatest, distance.greatest);
    greatest.not_finite += distance.not_finite;
    if (distance.greatest == 0 && distance.not_finite == 0)
      ++equal;
    else
      values.push_back({{"name", name}, {"greatest", distance.greatest}, {"not_finite", distance.not_finite}});
  }
  const bool same = only[0].empty() && only[1].empty() && shapes.empty() && dtypes.empty() && values.empty();
  if (as_json) {
    const Json all = {{"here", set.path()},
                      {"there", other.path()},
                      {"same", same},
                      {"only_here", only[0]},
                      {"only_there", only[1]},
                      {"shapes", shapes},
                      {"dtypes", dtypes},
                      {"equal", equal},
                      {"values", values},
                      {"greatest", greatest.greatest},
                      {"not_finite", greatest.not_finite}};
    print(all);
    return;
  }
  const std::string* paths[2] = {&set.path(), &other.path()};
  for (int side : {0, 1})
    for (const Json& name : only[side])
      std::printf("only in %s: %s\n", paths[side]->c_str(), name.get<std::string>().c_str());
  for (const auto& [what, list] : {std::pair("shape", shapes), std::pair("dtype", dtypes)})
    for (const Json& one : list)
      std::printf("%s: %s: %s and %s\n", what, one["name"].get<std::string>().c_str(), one["here"].dump().c_str(),
                  one["there"].dump().c_str());
  const int width = name_width(here);
  for (const Json& one : values)
    std::printf("%-*s %.6g at most%s\n", width, one["name"].get<std::string>().c_str(), one["greatest"].get<double>(),
                one["not_finite"] == 0 ? "" : join(", ", one["not_finite"].get<int64_t>(), " NaN or infinite").c_str());
  std::printf("%lld tensors have equal numbers, %zu differ, by %.6g at most\n", static_cast<long long>(equal),
              values.size(), greatest.greatest);
}

}  // namespace

void add_inspect(CLI::App& app) {
  struct Options {
    std::string path, other;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("inspect", "the tensors of safetensors files: shapes, bytes, mean, deviation");
  command->add_option("path", options->path, "a .safetensors file, an .index.json, or a directory with a model")
      ->required();
  command->add_option("--diff", options->other, "another one: what differs, and by how much at most");
  command->add_flag("--json", options->json, "JSON instead of a table");
  set_work(*command, [options] {
    if (options->other.empty())
      inspect(options->path, options->json);
    else
      show_difference(options->path, options->other, options->json);
  });
}

}  // namespace cinta::tools
