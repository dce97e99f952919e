// The widths of an MLP's layers, as options spell them.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace cinta::tools {

/// "784,512,10": {784, 512, 10}. Throws ValueError for what is no list of whole numbers.
std::vector<int64_t> widths_of(const std::string& text);

/// Refuses other values of an option.
CLI::Validator are_widths();

}  // namespace cinta::tools
