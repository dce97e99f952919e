// A watcher of rows that keeps their calls.
#include "cinta/backends/captured_step.h"

#include <atomic>
#include <thread>

#include "cinta/backends/kernel.h"

namespace cinta {
namespace {

constexpr const char* name = "captured_step";

class Capture final : public RowWatcher {
 public:
  Capture(Device device, std::vector<CapturedStep::Call>& calls) : device_(device), calls_(calls) {
    watch_rows(device_, this);
  }
  ~Capture() override { watch_rows(device_, nullptr); }
  void before(const KernelRow&, std::span<const View>) override {
    if (here())
      ++depth_;
    else
      ++elsewhere_;
  }
  void after(const KernelRow& row, std::span<const View>) override {
    if (!here()) return;
    --depth_;
    row_ = row.name();
  }
  /// What a row calls, it calls again in a replay.
  bool keeps_calls() const override { return here() && depth_ == 0; }
  void keep(KeptCall call) override { calls_.push_back({row_, std::move(call)}); }

  void check(Where where) const {
    require(depth_ == 0, name, where, "no row of the step throws, caught or not: what came after was not captured");
    require(elsewhere_ == 0, name, where, "rows of ", device_, " run on the capturing thread alone; others ran ",
            elsewhere_.load());
  }

 private:
  bool here() const { return std::this_thread::get_id() == thread_; }
  Device device_;
  std::vector<CapturedStep::Call>& calls_;
  const char* row_ = nullptr;  ///< that ran last
  std::thread::id thread_ = std::this_thread::get_id();
  int depth_ = 0;
  std::atomic<int> elsewhere_{0};
};

}  // namespace

CapturedStep::CapturedStep(Device device, const Callback<void()>& step, Where where) : device_(device) {
  require(!row_watcher(device), name, where, "nothing else watches the rows of ", device,
          ": a profile, or a capture around this one");
  context_.set_stream(context().stream(device));
  context_.status(device);  // before what is written in each replay and could lie there
  context_.capture(context());
  const ContextScope own(context_);
  const Capture capture(device, calls_);
  step();
  capture.check(where);
  require(!calls_.empty(), name, where, "a step with rows of ", device, ": none has run");
}

void CapturedStep::replay(Where where) {
  require(!context().captures(), name, where,
          "a replay is no part of a step that is captured: its rows would be missing");
  require(context_.flags_are_right(), name, where,
          "each gradient that the step writes or reads is there, or cleared, before a replay as it was before the step "
          "was captured: clear gradients in the step, or before each replay");
  for (const auto& [check, action] : context_.repeated()) check();
  const bool at_once = runtime_of(device_).host_accessible();
  try {
    for (const auto& [row, call] : calls_) {
      call.make();
      if (call.reports) context_.check_status_of(row, device_, where);
    }
    context_.set_flags();
    for (const auto& [check, action] : context_.repeated()) action();
    if (!at_once) context_.check_status(device_);  // where all rows have run by now
  } catch (...) {
    context_.clear_flags();
    throw;
  }
}

}  // namespace cinta
