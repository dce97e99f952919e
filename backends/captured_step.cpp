// A watcher of rows that keeps their calls.
#include "cinta/backends/captured_step.h"

#include <thread>

#include "cinta/backends/kernel.h"

namespace cinta {
namespace {

class Capture final : public RowWatcher {
 public:
  Capture(Device device, std::vector<Callback<void()>>& calls) : device_(device), calls_(calls) {
    watch_rows(device_, this);
  }
  ~Capture() override { watch_rows(device_, nullptr); }
  void before(const KernelRow&, std::span<const View>) override { depth_ += here(); }
  void after(const KernelRow&, std::span<const View>) override { depth_ -= here(); }
  /// What a row calls, it calls again in a replay.
  bool keeps_calls() const override { return here() && depth_ == 0; }
  void keep(Callback<void()> call) override { calls_.push_back(std::move(call)); }

 private:
  bool here() const { return std::this_thread::get_id() == thread_; }
  Device device_;
  std::vector<Callback<void()>>& calls_;
  std::thread::id thread_ = std::this_thread::get_id();
  int depth_ = 0;
};

}  // namespace

CapturedStep::CapturedStep(Device device, const Callback<void()>& step, Where where) : device_(device) {
  require(!row_watcher(device), "captured_step", where, "nothing else watches the rows of ", device,
          ": a profile, or a capture around this one");
  context_.status(device);  // before what is written in each replay and could lie there
  context_.capture();
  const ContextScope own(context_);
  const Capture capture(device, calls_);
  step();
}

void CapturedStep::replay() {
  for (const Callback<void()>& call : calls_) call();
  context_.check_status(device_);
}

}  // namespace cinta
