// JSON files that people and other programs write, read without guessing.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "cinta/core/error.h"

namespace cinta::data {

/// The value of `text`. Throws FileError naming `op` and `file` where it is not JSON, has a byte order mark or a NUL,
/// an object has one key twice, or lists and objects lie more than 64 deep in each other.
nlohmann::json parse_json(std::string_view text, std::string_view op, std::string_view file,
                          Where where = Where::current());

/// The same; throws also where the value is no object.
nlohmann::json parse_json_object(std::string_view text, std::string_view op, std::string_view file,
                                 Where where = Where::current());

}  // namespace cinta::data
