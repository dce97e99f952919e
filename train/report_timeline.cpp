// A step's timeline: phases, forward and backward as lanes under the curve of its memory.
#include <algorithm>
#include <cmath>
#include <map>

#include "cinta/train/plot.h"
#include "cinta/train/readable.h"
#include "cinta/train/report_sections.h"

namespace cinta::train {
namespace {

using Kind = TraceSlice::Kind;
constexpr size_t most_slices = 3000;  // of a larger step the longest are drawn

struct Lanes {
  std::string phases, forward, backward;
  size_t left_out = 0;
};

std::string percent(double part) { return formatted("%.3f", 100 * part) + "%"; }

/// The length a slice must have to be drawn.
int64_t shortest_drawn(const std::vector<TraceSlice>& slices) {
  if (slices.size() <= most_slices) return 0;
  std::vector<int64_t> lengths;
  for (const TraceSlice& slice : slices) lengths.push_back(slice.end - slice.begin);
  std::ranges::nth_element(lengths, lengths.begin() + most_slices, std::greater());
  return lengths[most_slices];
}

/// What a pointer that rests on a slice is told, as an attribute.
std::string tip_of(const TraceSlice& slice) {
  std::string out = escaped(slice.name) + (slice.kind == Kind::backward ? " backward" : "") + ", " +
                    milliseconds(slice.end - slice.begin) + " ms";
  const auto line = [&](const std::string& text) { out += "&#10;" + escaped(text); };
  if (!slice.module.empty()) line(slice.module);
  for (const std::string& tensor : slice.inputs) line("in " + tensor);
  for (const std::string& tensor : slice.outputs) line("out " + tensor);
  if (slice.saved_bytes) line("keeps " + bytes_text(slice.saved_bytes));
  if (!slice.place.empty()) line(slice.place);
  return out;
}

Lanes draw(const StepProfile& profile, const std::vector<OpTime>& ops) {
  std::map<std::string, int> colors;
  for (const OpTime& op : ops) colors[op.name] = op.color;
  const TraceSlice& step = profile.slices.front();
  const double whole = static_cast<double>(step.end - step.begin);
  const int64_t shortest = shortest_drawn(profile.slices);
  Lanes lanes;
  for (const TraceSlice& slice : profile.slices) {
    if (&slice == &step || !slice.ended()) continue;
    if (slice.end - slice.begin < shortest) {
      ++lanes.left_out;
      continue;
    }
    const auto color = colors.find(slice.name);
    std::string& lane = slice.kind == Kind::phase     ? lanes.phases
                        : slice.kind == Kind::forward ? lanes.forward
                                                      : lanes.backward;
    lane += "<i class=\"k" + std::to_string(color == colors.end() ? 9 : color->second) + "\"" +
            (slice.node ? " data-n=\"" + std::to_string(slice.node) + "\"" : "") +
            " style=\"left:" + percent(static_cast<double>(slice.begin - step.begin) / whole) +
            ";width:" + percent(static_cast<double>(slice.end - slice.begin) / whole) + "\" title=\"" + tip_of(slice) +
            "\"><b>" + escaped(slice.name) + "</b></i>\n";
  }
  return lanes;
}

std::string axis(double whole) {
  const PlotAxis axis = plot_axis(0, whole / 1e6, 6, false);
  std::string out;
  for (size_t i = 0; i < axis.ticks.size(); ++i) {
    const double part = axis.ticks[i] * 1e6 / whole;
    const char* kind = part < 0.02 ? " class=\"first\"" : part > 0.97 ? " class=\"last\"" : "";
    out += join("<span", kind, " style=\"left:", percent(part), "\">", axis.labels[i], i == 0 ? " ms" : "", "</span>");
  }
  return element("div", "class=\"ticks\"", out);
}

std::string lane(const char* name, const std::string& slices) {
  return element("div", "class=\"name\"", name) + element("div", "class=\"lane\"", slices);
}

}  // namespace

std::string report_timeline(const StepProfile& profile, const std::vector<OpTime>& ops) {
  const TraceSlice& step = profile.slices.front();
  const Lanes lanes = draw(profile, ops);
  std::string wide = report_memory_curve(profile) + axis(static_cast<double>(step.end - step.begin)) +
                     lane("phases", lanes.phases) + lane("forward", lanes.forward) + lane("backward", lanes.backward);
  std::string out = "<h3>Memory and time</h3>" +
                    element("div", "class=\"scroll timeline\" id=\"timeline\"", element("div", "class=\"wide\"", wide));
  if (lanes.left_out)
    out += element("p", "class=\"dim\"", join(lanes.left_out, " short slices are not drawn; --trace writes them all."));
  return element("div", "class=\"card\"", out);
}

}  // namespace cinta::train
