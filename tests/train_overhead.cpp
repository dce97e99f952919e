// What the loop and the callbacks that log add to a training step while nothing is traced: no kernel, no block of
// memory. Counted, not timed.
#include <catch2/catch.hpp>

#include "cinta/autograd/tape.h"
#include "cinta/backends/kernel.h"
#include "cinta/core/context.h"
#include "cinta/optim/accumulation.h"
#include "cinta/train/report_page.h"
#include "cinta/train/reports.h"
#include "heap_requests.h"
#include "train_helpers.h"

using namespace cinta;
using namespace cinta::testing;
using train::Moment;
using train::RunOptions;

namespace {

/// Counts the rows that run on the CPU.
class Rows : public RowWatcher {
 public:
  Rows() { watch_rows(cpu, this); }
  ~Rows() override { watch_rows(cpu, nullptr); }
  void before(const KernelRow&, std::span<const View>) override { ++count; }
  void after(const KernelRow&, std::span<const View>) override {}
  int64_t count = 0;
};

struct Counts {
  int64_t rows, blocks, system, heap;
  bool operator==(const Counts&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Counts& counts) {
  return out << counts.rows << " rows, " << counts.blocks << " blocks, " << counts.system << " of them the machine's, "
             << counts.heap << " requests to the heap";
}

Counts now(const Rows& rows) {
  const MemoryStatistics memory = memory_statistics(cpu);
  return {rows.count, memory.requests, memory.system_requests, heap_requests};
}
Counts operator-(const Counts& after, const Counts& before) {
  return {after.rows - before.rows, after.blocks - before.blocks, after.system - before.system,
          after.heap - before.heap};
}
/// Those of the device alone: text is made on the heap.
Counts without_heap(Counts counts) {
  counts.heap = 0;
  return counts;
}

/// Looks at the counters when a step begins (standing before other callbacks) and when it ends (after them).
struct Looking : train::TrainerCallback {
  Looking(const Rows& rows, std::vector<Counts>& looks, bool at_begin) : rows(rows), looks(looks), at_begin(at_begin) {
    looks.reserve(100);
  }
  void on_step_begin(const Moment&) override {
    if (at_begin) looks.push_back(now(rows));
  }
  void on_step_end(const Moment&) override {
    if (!at_begin) looks.push_back(now(rows));
  }
  const Rows& rows;
  std::vector<Counts>& looks;
  bool at_begin;
};

constexpr int64_t steps = 12, first_warm = 5;

struct Counted {
  std::vector<Counts> steps;         ///< each warm step, from the first callback's begin to the last one's end
  std::vector<Counts> with_logging;  ///< from the begin of one to the begin of the next
};

/// Runs with these callbacks, a line of metrics after every step.
Counted count_run(const std::string& directory, std::vector<std::shared_ptr<train::TrainerCallback>> callbacks) {
  auto task = small_masked();
  RunOptions options = small_run(directory);
  options.max_steps = steps;
  options.eval_steps = 0;
  options.logging_steps = 1;
  Rows rows;
  std::vector<Counts> begins, ends;
  callbacks.insert(callbacks.begin(), std::make_shared<Looking>(rows, begins, true));
  callbacks.push_back(std::make_shared<Looking>(rows, ends, false));
  options.callbacks = callbacks;
  train::run(task, options, {{"model", std::string("small")}});
  Counted out;
  for (size_t step = first_warm; step + 1 < static_cast<size_t>(steps); ++step) {
    out.steps.push_back(ends[step] - begins[step]);
    out.with_logging.push_back(without_heap(begins[step + 1] - begins[step]));
  }
  return out;
}

/// The same steps by hand: nothing but their computation.
std::vector<Counts> count_bare() {
  auto task = small_masked();
  const RunOptions options = small_run("");
  optim::AdamW optimizer(task.model().parameters(), options.optimizer);
  optim::LossScaler scaler(optimizer);
  Rows rows;
  std::vector<Counts> out;
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<data::Batch> window;
    std::vector<int64_t> items;
    for (int64_t i = 0; i < options.accumulation_steps; ++i) {
      window.push_back(task.batches().batch(step * options.accumulation_steps + i));
      items.push_back(window.back().items);
    }
    const Counts before = now(rows);
    const Tensor seed = scaler.scaled(optim::accumulation_seed(items));
    optimizer.zero_gradients();
    for (int64_t i = 0; i < options.accumulation_steps; ++i) {
      task.random()->set_step(step);
      task.random()->set_first_sample(i * task.samples_per_batch());
      autograd::backward(task.forward(window[static_cast<size_t>(i)]).loss_sum, {.seeds = {seed}});
    }
    optimizer.step({.max_norm = options.max_grad_norm, .loss_scale = scaler.scale()});
    scaler.update();
    if (step >= first_warm && step + 1 < steps) out.push_back(without_heap(now(rows) - before));
  }
  return out;
}

}  // namespace

TEST_CASE("logging adds no kernel row and no memory to a step that is not traced", "[train]") {
  const ThreadScope one(1);  // a further thread's workspace grows when it first gets a tile
  const Scratch scratch;
  const std::vector<Counts> bare = count_bare();
  const Counted plain = count_run(scratch / "plain", {});
  const Counted logged =
      count_run(scratch / "logged", {std::make_shared<train::TensorBoardReport>(),
                                     std::make_shared<train::TraceReport>(scratch / "trace.json", steps, steps),
                                     std::make_shared<train::ReportPage>()});
  REQUIRE(bare.size() == steps - first_warm - 1);
  for (size_t i = 0; i < bare.size(); ++i) {
    INFO("warm step " << i);
    CHECK(bare[i].rows > 100);
    CHECK(bare[i].blocks > 100);
    CHECK(bare[i].system == 0);
    CHECK(plain.with_logging[i] == bare[i]);
    CHECK(logged.with_logging[i] == bare[i]);
    CHECK(without_heap(logged.steps[i]) == bare[i]);
    CHECK(logged.steps[i] == plain.steps[i]);
  }
}
