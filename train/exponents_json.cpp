// Exponents of steps as JSON, written and read.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"
#include "cinta/train/exponents.h"

namespace cinta::train {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Exponents& one) {
  Json lost = Json::object();
  for (const ExponentRange& range : exponent_ranges())
    lost[range.name] = {{"vanishing", one.vanishing(range.least)}, {"saturating", one.saturating(range.top)}};
  return {{"name", one.name}, {"kind", name_of(one.kind)}, {"zeros", one.zeros}, {"not_finite", one.not_finite},
          {"lost", lost},     {"counts", one.counts}};
}

/// nullopt for what json_of() does not write.
std::optional<Exponents> exponents_of(const nlohmann::json& json) {
  constexpr std::array kinds{Exponents::forward, Exponents::gradient, Exponents::weight, Exponents::weight_gradient};
  const auto kind = std::ranges::find_if(
      kinds, [&](Exponents::Kind one) { return json.at("kind").get<std::string>() == name_of(one); });
  Exponents out;
  if (kind == kinds.end() || json.at("counts").size() != out.counts.size()) return std::nullopt;
  out.kind = *kind;
  out.name = json.at("name");
  out.zeros = json.at("zeros");
  out.not_finite = json.at("not_finite");
  out.counts = json.at("counts");
  return out;
}

}  // namespace

std::string json_of(const std::vector<ExponentStep>& steps) {
  Json all = Json::array();
  for (const ExponentStep& step : steps) {
    Json tensors = Json::array();
    for (const Exponents& one : step.tensors) tensors.push_back(json_of(one));
    all.push_back({{"step", step.step}, {"tensors", tensors}});
  }
  return Json{{"least_exponent", Exponents::least}, {"steps", all}}.dump() + "\n";
}

std::vector<ExponentStep> read_exponents(const std::string& path, Where where) {
  const nlohmann::json json = data::parse_json_object(data::read_file(path), "exponents", path, where);
  std::vector<ExponentStep> out;
  bool fits = true;
  try {
    fits = json.at("least_exponent") == Exponents::least;
    for (const nlohmann::json& step : json.at("steps")) {
      ExponentStep& read = out.emplace_back();
      read.step = step.at("step");
      for (const nlohmann::json& tensor : step.at("tensors"))
        if (const auto one = exponents_of(tensor))
          read.tensors.push_back(*one);
        else
          fits = false;
    }
  } catch (const nlohmann::json::exception&) {
    fits = false;
  }
  require<FileError>(fits, "exponents", where, path,
                     ": not what a run writes there; without it the picture begins anew");
  return out;
}

}  // namespace cinta::train
