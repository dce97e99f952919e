// How error messages are put together.
#include "cinta/core/error.h"

#include <cmath>
#include <cstdio>
#include <utility>

namespace cinta {
namespace {
thread_local std::string scope_path;
}

void describe(std::string& out, std::string_view text) { out += text; }
void describe(std::string& out, long long number) { out += std::to_string(number); }
void describe(std::string& out, unsigned long long number) { out += std::to_string(number); }
void describe(std::string& out, double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  out += std::isnan(number) ? "nan" : text;  // whose sign says nothing
}

std::string place_of(Where where) {
  if (where.line() == 0) return "";
  const std::string file = where.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(where.line());
}

Message located(std::string_view op, std::string_view message, Where where) {
  Message out{"[" + std::string(op) + "] " + std::string(message), where.line() ? ", " + place_of(where) : ""};
  if (!scope_path.empty()) out.text += ", in " + scope_path;
  return out;
}

NameScope::NameScope(std::string_view name) : length_before_(scope_path.size()) {
  if (!scope_path.empty()) scope_path += '.';
  scope_path += name;
}
NameScope::~NameScope() { scope_path.resize(length_before_); }
const std::string& NameScope::path() { return scope_path; }
bool NameScope::within(std::string_view module) {
  return scope_path.starts_with(module) && (scope_path.size() == module.size() || scope_path[module.size()] == '.');
}

PathScope::PathScope(std::string path) : before_(std::exchange(scope_path, std::move(path))) {}
PathScope::~PathScope() { scope_path = std::move(before_); }

}  // namespace cinta
