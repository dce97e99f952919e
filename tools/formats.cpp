// `cinta formats`: what the floating-point formats can hold.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cinta/core/error.h"
#include "cinta/core/format_facts.h"
#include "tools/commands.h"

namespace cinta::tools {
namespace {

const char* beyond(const FormatFacts& format) {
  if (format.overflow == Overflow::saturate) return "the largest";
  return format.infinities > 0 ? "infinity" : "NaN";
}

void print_json() {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const FormatFacts& format : float_formats)
    all.push_back({{"name", format.name},
                   {"exponent_bits", format.exponent_bits},
                   {"mantissa_bits", format.mantissa_bits},
                   {"bias", format.bias},
                   {"top_exponent", format.top_exponent},
                   {"least_exponent", format.least_exponent},
                   {"largest", format.largest},
                   {"smallest_normal", format.smallest_normal},
                   {"smallest_subnormal", format.smallest_subnormal},
                   {"infinities", format.infinities},
                   {"nans", format.nans},
                   {"negative_zero", format.negative_zero},
                   {"beyond_the_largest", beyond(format)}});
  std::printf("%s\n", all.dump(2).c_str());
}

void print_table() {
  std::printf("%-11s %5s %5s %9s %13s %22s %22s %9s %9s %3s  %s\n", "format", "E/M", "bias", "exponents", "largest",
              "smallest normal", "smallest subnormal", "infinity", "NaN", "-0", "beyond");
  for (const FormatFacts& format : float_formats) {
    const auto small = [](double value) { return join("2^", std::ilogb(value), " = ", value); };
    const auto codes = [](int count) { return count == 1 ? "1 code" : join(count, " codes"); };
    std::printf("%-11s %5s %5d %9s %13.8g %22s %22s %9s %9s %3s  %s\n", std::string(format.name).c_str(),
                join(format.exponent_bits, "/", format.mantissa_bits).c_str(), format.bias,
                join(format.least_exponent, "..", format.top_exponent).c_str(), format.largest,
                small(format.smallest_normal).c_str(), small(format.smallest_subnormal).c_str(),
                format.infinities ? "yes" : "no", codes(format.nans).c_str(), format.negative_zero ? "yes" : "no",
                beyond(format));
  }
  std::printf(
      "E/M: bits of exponent and mantissa. Rounding is to nearest, ties to even. tf32 is a way to read f32 in a "
      "matrix\n"
      "product, not a type to store. f8e4m3 and f8e5m2 are OCP's (in hardware since Hopper), fnuz their cousins.\n");
}

}  // namespace

void add_formats(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("formats", "the floating-point formats and what they can hold");
  command->add_flag("--json", *json, "a list of objects");
  set_work(*command, [json] { *json ? print_json() : print_table(); });
}

}  // namespace cinta::tools
