// Every part between two commas is a number: one that is empty is a slip of the hand.
#include "tools/widths.h"

#include <charconv>

#include "cinta/core/error.h"

namespace cinta::tools {
namespace {

/// Appends the widths to `out`; what is wrong with the text, or nothing.
std::string fault_of(const std::string& text, size_t least, std::vector<int64_t>& out) {
  const char *at = text.data(), *end = text.data() + text.size();
  while (true) {
    const auto [stop, error] = std::from_chars(at, end, out.emplace_back());
    if (error != std::errc() || (stop != end && *stop != ',') || out.back() < 1)
      return join("widths are numbers of at least 1, such as 784,512,10, given '", text, "'");
    if (stop == end) return out.size() < least ? join("at least ", least, " widths, given '", text, "'") : "";
    at = stop + 1;
  }
}

}  // namespace

std::vector<int64_t> widths_of(const std::string& text) {
  std::vector<int64_t> out;
  const std::string fault = fault_of(text, 1, out);
  require(fault.empty(), "mlp", Where(), fault);
  return out;
}

CLI::Validator are_widths(size_t least) {
  return {[least](const std::string& text) {
            std::vector<int64_t> widths;
            return fault_of(text, least, widths);
          },
          "", ""};
}

}  // namespace cinta::tools
