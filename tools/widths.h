// The widths of an MLP's layers, as options spell them.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace cinta::tools {

/// "784,512,10": {784, 512, 10}. Throws ValueError for what is no list of positive whole numbers.
std::vector<int64_t> widths_of(const std::string& text);

/// Refuses other values of an option, and fewer widths than `least`.
CLI::Validator are_widths(size_t least = 1);

}  // namespace cinta::tools
