// How a run shows that it moves: one bar on a terminal, redrawn in place, or a plain line now and then elsewhere.
//   120/5000 |####................| 2%  loss 4.12  masked accuracy 0.31  24.1k tokens/s  02:51 left
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cinta::train {

/// A number shown beside the bar.
struct Shown {
  std::string_view name;
  double value;
};

struct ProgressOptions {
  int64_t total_steps;
  int64_t first_step = 0;       ///< steps done before, by a resumed run
  int64_t plain_every = 100;    ///< steps from one plain line to the next
  std::string items = "items";  ///< what items_done counts: tokens, images
  bool quiet = false;           ///< show nothing
  int descriptor = 2;           ///< where to: standard error
};

/// What a line says. Negative rates and times are unknown and left out.
struct ProgressState {
  int64_t step;
  int64_t total_steps;
  std::span<const Shown> values;
  double items_per_second;
  std::string_view items;
  double seconds_left;
};
/// One line without an end; at most `width` columns with a bar that takes the room left, or as long as needed and
/// without a bar where width is 0.
std::string progress_line(const ProgressState& state, int width, bool color);

class Progress {
 public:
  explicit Progress(ProgressOptions options);
  /// Leaves the terminal on a fresh line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// After each step, or each time the numbers are known. `items_done` counts from the start of this process.
  void update(int64_t step, std::span<const Shown> values, double items_done);
  /// A line of text that stays, above the bar.
  void message(std::string_view text);

 private:
  bool due(int64_t step, double now) const;
  void measure(int64_t step, double items_done, double now);
  void show(const std::string& text) const;

  ProgressOptions options_;
  bool terminal_, color_;
  std::string bar_;  ///< as drawn now; empty where no bar stands
  int64_t last_step_, last_shown_ = -1;
  double last_items_ = 0;
  double seconds_per_step_ = -1, items_per_second_ = -1;
  double measured_ = 0;  ///< seconds since the first line
  double last_time_;     ///< seconds of a clock that only goes forward
};

}  // namespace cinta::train
