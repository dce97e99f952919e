// Strictness on top of the library's parser.
#include "cinta/data/strict_json.h"

#include <nlohmann/json.hpp>
#include <set>

#include "cinta/data/safetensors_header.h"

namespace cinta::data {

using Json = nlohmann::json;

Json parse_json(std::string_view text, std::string_view op, std::string_view file, Where where) {
  const auto check = [&](bool ok, const auto&... parts) { require<FileError>(ok, op, where, file, ": ", parts...); };
  // Two leniencies of the tokeniser: it skips a byte order mark and takes a NUL for the end of the text.
  check(!text.starts_with("\xEF\xBB\xBF"), "byte 0: found a byte order mark, expected JSON");
  const auto nul = text.find('\0');
  check(nul == text.npos, "byte ", nul, ": found a NUL, expected JSON");
  std::vector<std::set<std::string>> keys;  // of two equal ones the library keeps the last
  constexpr int deepest = 64;               // a file of nothing but brackets would take fifty times its size
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    check(depth <= deepest, "found lists and objects more than ", deepest, " deep in each other");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key)
      check(keys.back().insert(value.get<std::string>()).second, "found the key '", printable(value.get<std::string>()),
            "' twice");
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::exception& error) {
    std::string_view reason = error.what();
    for (std::string_view skip : {"] ", "syntax error "})
      if (const auto at = reason.find(skip); at != reason.npos) reason.remove_prefix(at + skip.size());
    const auto* place = dynamic_cast<const Json::parse_error*>(&error);
    const std::string byte = place != nullptr && place->byte > 0 ? join("byte ", place->byte - 1, ": ") : "";
    check(false, "is not JSON: ", byte, printable(reason));
    throw;
  }
}

Json parse_json_object(std::string_view text, std::string_view op, std::string_view file, Where where) {
  Json json = parse_json(text, op, file, where);
  require<FileError>(json.is_object(), op, where, file, ": is not a JSON object");
  return json;
}

}  // namespace cinta::data
