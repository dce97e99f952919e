// Errors: one function builds every message from the requirement and what was given.
//   [matmul] inner sizes differ: lhs f32[32,128]@cpu x rhs f32[64,10]@cpu (128 != 64), in mlp.fc2, train.cpp:41
#pragma once
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cinta {

/// The place in the user's program that an error or a tape node speaks of.
using Where = std::source_location;
/// "file.cpp:12", without folders; empty where `where` names no place.
std::string place_of(Where where);

/// What an error says, and the place that it ends with.
struct Message {
  std::string text, place;
};

/// Every error Cinta throws. `what()` is one line.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text) : runtime_error(text), length_(text.size()) {}
  explicit Error(const Message& message) : runtime_error(message.text + message.place), length_(message.text.size()) {}
  /// `what()` without the place in a program, which tells nothing to whom a file or an option is at fault.
  std::string_view text() const { return {what(), length_}; }

 private:
  size_t length_;
};
/// The caller's input is wrong (a command exits with 2).
struct InputError : Error {
  using Error::Error;
};
struct ShapeError : InputError {
  using InputError::InputError;
};
struct DtypeError : InputError {
  using InputError::InputError;
};
struct DeviceError : InputError {
  using InputError::InputError;
};
struct ValueError : InputError {
  using InputError::InputError;
};
/// A file is missing, damaged or of another shape than expected.
struct FileError : InputError {
  using InputError::InputError;
};
/// The machine has no more memory (a command exits with 1).
struct OutOfMemory : Error {
  using Error::Error;
};
/// Cinta's own fault (a command exits with 1).
struct InternalError : Error {
  using Error::Error;
};

/// Appends a readable form of a value to a message; core types add overloads beside their definitions.
void describe(std::string& out, std::string_view text);
void describe(std::string& out, long long number);
void describe(std::string& out, unsigned long long number);
void describe(std::string& out, double number);
inline void describe(std::string& out, const char* text) { describe(out, std::string_view(text)); }
inline void describe(std::string& out, int number) { describe(out, static_cast<long long>(number)); }
inline void describe(std::string& out, long number) { describe(out, static_cast<long long>(number)); }
inline void describe(std::string& out, unsigned number) { describe(out, static_cast<unsigned long long>(number)); }
inline void describe(std::string& out, unsigned long number) { describe(out, static_cast<unsigned long long>(number)); }

/// Joins the readable forms of `parts`.
template <class... Parts>
std::string join(const Parts&... parts) {
  std::string out;
  (describe(out, parts), ...);
  return out;
}

/// `[op] message, in module.path`, and `, file.cpp:line`; the latter is left out when `where` is empty.
Message located(std::string_view op, std::string_view message, Where where);

/// Throws `E` built from `parts` unless `ok`. Costs one branch when it holds.
template <class E = ValueError, class... Parts>
void require(bool ok, std::string_view op, Where where, const Parts&... parts) {
  if (!ok) [[unlikely]]
    throw E(located(op, join(parts...), where));
}

/// While alive, errors thrown on this thread say `in outer.name`.
class NameScope {
 public:
  explicit NameScope(std::string_view name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;
  /// The dotted path of the scopes alive on this thread.
  static const std::string& path();
  /// Whether that path is `module` or below it.
  static bool within(std::string_view module);

 private:
  size_t length_before_;
};

/// While alive, NameScope::path() is `path`, whatever scopes there are around: for work that goes on elsewhere than it
/// began.
class PathScope {
 public:
  explicit PathScope(std::string path);
  ~PathScope();
  PathScope(const PathScope&) = delete;
  PathScope& operator=(const PathScope&) = delete;

 private:
  std::string before_;
};

}  // namespace cinta
