// How error messages are put together.
#include "cinta/core/error.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <utility>

#include "cinta/core/error_place.h"

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

std::string located(std::string_view op, std::string_view message, Where where) {
  std::string out = "[" + std::string(op) + "] " + std::string(message);
  if (!scope_path.empty()) out += ", in " + scope_path;
  if (where.line() != 0) out += ", " + place_of(where);
  return out;
}

namespace {

/// How long the text ", file.cpp:12" is that `text` begins with; 0 where it begins with none.
size_t place_length(std::string_view text) {
  size_t at = text.starts_with(", ") ? 2 : text.size();
  while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_')) ++at;
  const std::string_view rest = text.substr(at);
  for (const std::string_view ending : {".cpp:", ".h:", ".hpp:", ".cc:", ".tcc:"}) {
    if (at == 2 || !rest.starts_with(ending)) continue;
    const size_t first = at += ending.size();
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) ++at;
    return at > first && (at == text.size() || text.substr(at).find_first_of(",;: \n") == 0) ? at : 0;
  }
  return 0;
}

}  // namespace

std::string without_places(std::string_view message) {
  std::string out;
  while (!message.empty()) {
    if (const size_t length = place_length(message); length > 0) {
      message.remove_prefix(length);
    } else {
      out += message.front();
      message.remove_prefix(1);
    }
  }
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
