// Steps are timed twice: left alone for what they take, watched for where it goes.
#include "tools/bench_step.h"

#include <algorithm>
#include <functional>
#include <map>

#include "cinta/autograd/narrow_products.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/context.h"
#include "cinta/optim/adamw.h"
#include "cinta/train/precision.h"

namespace cinta::tools {
namespace {

/// When the stages of a step began, and when the last ended.
struct StepClock {
  double at[stage_count + 1];
  double whole() const { return at[stage_count] - at[0]; }
};

class Stepper {
 public:
  explicit Stepper(const SampleStep& sample) : sample_(sample), optimizer_(sample.model->parameters(), {}) {
    if (sample.autocast && sample.autocast->low != Dtype::f32) optimizer_.keep_shadows(sample.autocast->low);
  }

  StepClock step() {
    StepClock clock;
    clock.at[forward_stage] = train::seconds();
    const Tensor loss = forward();
    clock.at[backward_stage] = train::seconds();
    autograd::backward(loss);
    clock.at[update_stage] = train::seconds();
    optimizer_.step();
    if (sample_.autocast && sample_.autocast->products)
      sample_.autocast->products->update(optimizer_.gradient_factor());
    optimizer_.zero_gradients();
    clock.at[stage_count] = train::seconds();
    if (sample_.autocast) train::require_modules_met(*sample_.autocast, Where());
    last_loss = item(loss);
    return clock;
  }
  double last_loss = 0;

 private:
  Tensor forward() {
    const autograd::AutocastScope types(sample_.autocast);
    return sample_.loss();
  }
  const SampleStep& sample_;
  optim::AdamW optimizer_;
};

struct Watched {
  StepClock clock;
  std::vector<RowTimes::Call> calls;
};

std::vector<RowSum> sum_up(const std::vector<Watched>& steps) {
  std::map<std::pair<const KernelRow*, Stage>, RowSum> sums;
  for (const Watched& step : steps)
    for (const RowTimes::Call& call : step.calls) {
      const Stage stage = call.begin < step.clock.at[backward_stage] ? forward_stage
                          : call.begin < step.clock.at[update_stage] ? backward_stage
                                                                     : update_stage;
      RowSum& sum = sums[{call.row, stage}];
      sum.row = call.row->name();
      sum.stage = stage;
      ++sum.calls;
      sum.seconds += call.end - call.begin;
      sum.work.flops += call.work.flops;
      sum.work.bytes += call.work.bytes;
    }
  std::vector<RowSum> rows;
  const double count = static_cast<double>(steps.size());
  for (auto& [key, sum] : sums)
    rows.push_back({std::move(sum.row),
                    sum.stage,
                    sum.calls / count,
                    sum.seconds / count,
                    {sum.work.flops / count, sum.work.bytes / count}});
  std::ranges::sort(rows, std::greater(), &RowSum::seconds);
  return rows;
}

void watch(Stepper& stepper, const SeenKeys& seen, int64_t steps, StepTimes& out) {
  std::vector<Watched> watched;
  RowTimes times(seen);
  for (int64_t i = 0; i < steps; ++i) {
    times.calls.clear();
    const StepClock clock = stepper.step();
    watched.push_back({clock, times.calls});
  }
  std::ranges::sort(watched, {}, [](const Watched& step) { return step.clock.whole(); });
  watched.resize((watched.size() + 1) / 2);  // the slower half tells of the machine's other work
  out.rows = sum_up(watched);
  for (const Watched& step : watched) out.watched += step.clock.whole() / static_cast<double>(watched.size());
  out.between_rows = out.watched;
  for (const RowSum& row : out.rows) out.between_rows -= row.seconds;
}

}  // namespace

StepTimes time_steps(const SampleStep& sample, int64_t warmup, int64_t steps) {
  Stepper stepper(sample);
  for (int64_t i = 0; i < warmup; ++i) stepper.step();
  const int64_t before = memory_statistics(cpu).system_bytes;
  std::vector<double> whole, stages[stage_count];
  for (int64_t i = 0; i < steps; ++i) {
    const StepClock clock = stepper.step();
    whole.push_back(clock.whole());
    for (int stage = 0; stage < stage_count; ++stage) stages[stage].push_back(clock.at[stage + 1] - clock.at[stage]);
  }
  StepTimes out;
  out.step = train::Statistics(whole);
  for (int stage = 0; stage < stage_count; ++stage) out.stages[stage] = train::Statistics(stages[stage]);
  out.allocated_bytes = memory_statistics(cpu).system_bytes - before;
  watch(stepper, sample.seen, steps, out);
  out.loss = stepper.last_loss;
  return out;
}

}  // namespace cinta::tools
