// Pieces of SVG that all charts share.
#pragma once
#include <string>
#include <string_view>

namespace cinta::train {

inline constexpr double plot_margin = 12;
inline constexpr double plot_line_height = 17, plot_letter = 6.6;  ///< of 12 unit text; the width is an upper estimate
inline constexpr size_t plot_colors = 6;

/// A coordinate with one decimal.
std::string plot_number(double value);
/// `anchor` (start, middle, end) and `kind` (a class of the style sheet) may be empty.
std::string plot_text(double x, double y, std::string_view anchor, std::string_view kind, std::string_view text);
std::string plot_line(double x1, double y1, double x2, double y2, std::string_view kind);
/// The title of a chart of this width; one too long for its size is written smaller.
std::string plot_title(double y, double width, const std::string& title);
/// The opening of a chart: its size, its name, its style unless the page has it, the paper. `attributes` go into the
/// element and begin with a space.
std::string plot_opening(double width, double height, const std::string& title, bool in_page,
                         const std::string& attributes = "");

}  // namespace cinta::train
