// The progress line: what it says, when it is due, and the terminal it is drawn on.
#include "cinta/train/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "cinta/train/readable.h"
#include "cinta/train/timing.h"

namespace cinta::train {
namespace {

constexpr int shortest_bar = 10, longest_bar = 40;
constexpr std::string_view erase_line = "\r\x1b[K", green = "\x1b[32m", plain = "\x1b[0m";

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool is_terminal(int descriptor) {
  const char* kind = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

int columns(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string progress_line(const ProgressState& state, int width, bool color) {
  const double part = state.total_steps > 0 ? double(state.step) / double(state.total_steps) : 1;
  const std::string front = std::to_string(state.step) + "/" + std::to_string(state.total_steps);
  std::string back = " " + formatted("%.0f%%", std::floor(100 * part));
  for (const auto& [name, value] : state.values) back += "  " + std::string(name) + " " + formatted("%.4g", value);
  if (state.items_per_second >= 0)
    back += "  " + short_count(state.items_per_second) + " " + std::string(state.items) + "/s";
  if (state.seconds_left >= 0) back += "  " + clock_time(state.seconds_left) + " left";

  if (width <= 0) return "step " + front + back;
  const int room = width - int(front.size() + back.size()) - 3;  // a space and two strokes
  if (room < shortest_bar) return (front + back).substr(0, size_t(width));
  const int length = std::min(room, longest_bar);
  const int full = std::clamp(int(part * length), 0, length);
  const std::string done(size_t(full), '#'), open(size_t(length - full), '.');
  return front + " |" + (color ? std::string(green) + done + std::string(plain) : done) + open + "|" + back;
}

Progress::Progress(ProgressOptions options)
    : options_(std::move(options)),
      terminal_(is_terminal(options_.descriptor)),
      color_(terminal_ && !is_set("NO_COLOR")),
      last_step_(options_.first_step),
      last_time_(seconds()) {}

Progress::~Progress() {
  if (!bar_.empty()) show("\n");
}

bool Progress::due(int64_t step, double now) const {
  if (options_.quiet || step == last_shown_) return false;
  if (step >= options_.total_steps || last_shown_ < 0) return true;
  if (terminal_) return now - last_time_ >= 0.1;
  return step / options_.plain_every > last_shown_ / options_.plain_every;
}

/// Speeds forget the past over some ten seconds, so that the time left follows a machine that slows down; before that
/// they are means. What came before the first line, with all that happens once, counts only until the second.
void Progress::measure(int64_t step, double items_done, double now) {
  const double passed = now - last_time_;
  const auto steps = double(step - last_step_);
  if (steps > 0 && passed > 0) {
    if (seconds_per_step_ >= 0) measured_ += passed;
    const double weight = measured_ > 0 ? std::max(1 - std::exp(-passed / 10), passed / measured_) : 1;
    seconds_per_step_ += weight * (passed / steps - seconds_per_step_);
    items_per_second_ += weight * ((items_done - last_items_) / passed - items_per_second_);
  }
  last_step_ = step;
  last_items_ = items_done;
  last_time_ = now;
}

void Progress::update(int64_t step, std::span<const Shown> values, double items_done) {
  const double now = seconds();
  if (!due(step, now)) return;
  measure(step, items_done, now);
  last_shown_ = step;
  const double left = seconds_per_step_ < 0 ? -1 : seconds_per_step_ * double(options_.total_steps - step);
  const ProgressState state{step, options_.total_steps, values, items_per_second_, options_.items, left};
  if (terminal_) {
    bar_ = progress_line(state, columns(options_.descriptor) - 1, color_);
    show(std::string(erase_line) + bar_);
  } else {
    show(progress_line(state, 0, false) + "\n");
  }
}

void Progress::message(std::string_view text) {
  if (options_.quiet) return;
  if (bar_.empty())
    show(std::string(text) + "\n");
  else
    show(std::string(erase_line) + std::string(text) + "\n" + bar_);
}

/// A progress line that cannot be shown (a closed pipe) is no reason to end a run.
void Progress::show(const std::string& text) const {
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(options_.descriptor, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    done += size_t(count);
  }
}

}  // namespace cinta::train
