// The charts' style sheet and what is written with it.
#include "cinta/train/plot_markup.h"

#include <algorithm>

#include "cinta/train/plot.h"
#include "cinta/train/readable.h"

namespace cinta::train {
namespace {

// librsvg and others know no CSS variables, so every color is written twice.
constexpr std::string_view style = R"(
.plot text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:#424a53}
.plot .title{font-weight:600;fill:#1f2328}
.plot .paper{fill:#ffffff}.plot .grid{stroke:#d8dee4;stroke-width:1}.plot .axis{stroke:#8c959f;stroke-width:1}
.plot .curve{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}
.plot .dots{stroke-width:6;opacity:.75}.plot .marks{fill:none;stroke-width:4.6;stroke-linecap:round}
.plot .bar{fill:none;stroke-width:12}
.plot .reference{stroke:#6e7781;stroke-width:1.3;stroke-dasharray:5 4}
.plot .halo{paint-order:stroke;stroke:#ffffff;stroke-width:4;stroke-linejoin:round}
.plot .c0{stroke:#0969da}.plot .c1{stroke:#d1540a}.plot .c2{stroke:#1a7f37}
.plot .c3{stroke:#8250df}.plot .c4{stroke:#bf3989}.plot .c5{stroke:#57606a}
@media (prefers-color-scheme:dark){
.plot text{fill:#b1bac4}.plot .title{fill:#f0f6fc}
.plot .paper{fill:#0d1117}.plot .grid{stroke:#262c36}.plot .axis{stroke:#6e7681}
.plot .reference{stroke:#9198a1}.plot .halo{stroke:#0d1117}
.plot .c0{stroke:#58a6ff}.plot .c1{stroke:#f0883e}.plot .c2{stroke:#3fb950}
.plot .c3{stroke:#bc8cff}.plot .c4{stroke:#f778ba}.plot .c5{stroke:#9ea7b3}
}
)";

}  // namespace

std::string_view plot_style() { return style; }

std::string plot_number(double value) {
  std::string out = formatted("%.1f", value);
  if (out.ends_with(".0")) out.resize(out.size() - 2);
  return out;
}

std::string plot_text(double x, double y, std::string_view anchor, std::string_view kind, std::string_view text) {
  std::string out = "<text x=\"" + plot_number(x) + "\" y=\"" + plot_number(y) + "\"";
  if (!anchor.empty()) out.append(" text-anchor=\"").append(anchor) += "\"";
  if (!kind.empty()) out.append(" class=\"").append(kind) += "\"";
  return out + ">" + escaped(text) + "</text>\n";
}

std::string plot_line(double x1, double y1, double x2, double y2, std::string_view kind) {
  return "<path class=\"" + std::string(kind) + "\" d=\"M" + plot_number(x1) + " " + plot_number(y1) + "L" +
         plot_number(x2) + " " + plot_number(y2) + "\"/>\n";
}

std::string plot_title(double y, double width, const std::string& title) {
  constexpr double size = 15, letter_of_title = 0.62, left = 6;
  const double fitting = (width - plot_margin - left) / (letter_of_title * std::max(double(title.size()), 1.0));
  return "<text x=\"12\" y=\"" + plot_number(y) +
         "\" class=\"title\" style=\"font-size:" + plot_number(std::clamp(fitting, 8.0, size)) + "px\">" +
         escaped(title) + "</text>\n";
}

std::string plot_opening(double width, double height, const std::string& title, bool in_page,
                         const std::string& attributes) {
  constexpr double widest = 960;  // that a chart is enlarged to; one of more numbers is as wide as it is drawn
  const std::string name = escaped(title), across = plot_number(width), down = plot_number(height);
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 " + across + " " + down + "\" width=\"" +
      across + "\" height=\"" + down + "\" style=\"width:100%;max-width:" + plot_number(std::max(width, widest)) +
      "px;height:auto\" role=\"img\" aria-label=\"" + name + "\"" + attributes + ">\n<title>" + name + "</title>\n";
  if (!in_page) out.append("<style>").append(style) += "</style>\n";
  return out + "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n";
}

}  // namespace cinta::train
