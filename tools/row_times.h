// Kernel rows under the clock: how long each call took, and what it had to do.
#pragma once
#include <string_view>
#include <vector>

#include "cinta/backends/kernel.h"
#include "tools/seen_keys.h"

namespace cinta::tools {

/// What a call cannot do without.
struct RowWork {
  double flops = 0;  ///< multiplications and additions of matrix products and attention, else 0
  double bytes = 0;  ///< of tensors read and written, each once; one updated in place counts twice
  double held = 0;   ///< the same, but each counts once
};
RowWork work_of(std::string_view row, std::span<const View> views, const SeenKeys& seen = {});

/// While alive, times the CPU's rows. What a row calls is its own time. All calls come from one thread.
class RowTimes : public RowWatcher {
 public:
  struct Call {
    const KernelRow* row;
    double begin, end;
    RowWork work;
  };

  explicit RowTimes(const SeenKeys& seen = {}) : seen_(seen) { watch_rows(cpu, this); }
  ~RowTimes() override { watch_rows(cpu, nullptr); }
  RowTimes(const RowTimes&) = delete;
  RowTimes& operator=(const RowTimes&) = delete;

  void before(const KernelRow& row, std::span<const View> views) override;
  void after(const KernelRow& row, std::span<const View> views) override;

  /// In the order of the calls.
  std::vector<Call> calls;

 private:
  SeenKeys seen_;
  int depth_ = 0;
};

}  // namespace cinta::tools
