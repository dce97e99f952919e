// Where a step's time goes, by op: an observer at the door that reads the clock.
#pragma once
#include "cinta/autograd/mode.h"
#include "common.h"

namespace benchmark {

/// While alive, adds up the time of every op run on this thread, forward and backward apart.
class OpTimes : public cinta::autograd::Observer {
 public:
  OpTimes() : scope_(&cinta::autograd::Mode::observer, static_cast<cinta::autograd::Observer*>(this)) { mark(); }
  void before(const char*, std::span<const cinta::Tensor* const>) override { add("(between ops)"); }
  void forward(const char* name, cinta::Where, std::span<const cinta::Tensor>) override { add(name); }
  void backward(const cinta::autograd::Node& node, std::span<const cinta::Tensor>) override {
    add(std::string(node.name()) + ", backward");
  }
  /// The time from the last event until now goes to `name`.
  void add(const std::string& name) {
    const double now = seconds();
    Entry& entry = entries_[name];
    entry.seconds += now - last_;
    ++entry.calls;
    last_ = seconds();
  }
  void mark() { last_ = seconds(); }

  /// A line for each name, the costliest first, as milliseconds a step.
  void print(int64_t steps) const {
    std::vector<std::pair<std::string, Entry>> rows(entries_.begin(), entries_.end());
    std::sort(rows.begin(), rows.end(), [](auto& a, auto& b) { return a.second.seconds > b.second.seconds; });
    double total = 0;
    for (const auto& [name, entry] : rows) total += entry.seconds;
    const double scale = 1e3 / static_cast<double>(steps);
    std::printf("%-36s %10s %8s %8s\n", "op", "ms a step", "share", "calls");
    for (const auto& [name, entry] : rows)
      std::printf("%-36s %10.3f %7.1f%% %8.1f\n", name.c_str(), entry.seconds * scale, 100 * entry.seconds / total,
                  static_cast<double>(entry.calls) / static_cast<double>(steps));
    std::printf("%-36s %10.3f\n", "sum", total * scale);
  }

 private:
  struct Entry {
    double seconds = 0;
    int64_t calls = 0;
  };
  cinta::autograd::Scoped<cinta::autograd::Observer*> scope_;
  std::map<std::string, Entry> entries_;
  double last_ = 0;
};

}  // namespace benchmark
