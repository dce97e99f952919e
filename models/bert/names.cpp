// Only ends and beginnings of names change: an activation called "gamma" somewhere in a head keeps its name.
#include "cinta/models/bert/names.h"

#include <algorithm>
#include <utility>

namespace cinta::models {
namespace {

constexpr std::string_view body = "bert.", parts[] = {"embeddings.", "encoder.", "pooler."};
constexpr std::pair<std::string_view, std::string_view> endings[] = {{"LayerNorm.gamma", "LayerNorm.weight"},
                                                                     {"LayerNorm.beta", "LayerNorm.bias"}};

std::string_view without_body(std::string_view name) {
  return name.starts_with(body) ? name.substr(body.size()) : name;
}

std::string ending_in(std::string_view name, std::string_view ending, std::string_view other) {
  return std::string(name.substr(0, name.size() - ending.size())).append(other);
}

}  // namespace

std::string present_name(std::string_view name) {
  for (const auto& [old, now] : endings)
    if (name.ends_with(old)) return ending_in(name, old, now);
  return std::string(name);
}

bool is_body_name(std::string_view name) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return without_body(name).starts_with(part); });
}

std::optional<std::string> renamed(std::string_view name, BertNames to) {
  std::string out = present_name(name);
  if (is_body_name(out))
    out = std::string(to == BertNames::bare ? "" : body).append(without_body(out));
  else if (to == BertNames::bare)
    return std::nullopt;
  if (to == BertNames::old)
    for (const auto& [old, now] : endings)
      if (out.ends_with(now)) return ending_in(out, now, old);
  return out;
}

}  // namespace cinta::models
