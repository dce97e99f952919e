// One training step, measured: forward, backward, update. Alone it prints its own figures; with --serve it takes
// turns with another process (against_pytorch): a line with a number on stdin runs that many steps.
#include <iostream>

#include "cinta/autograd/autocast.h"
#include "cinta/autograd/narrow_products.h"
#include "cinta/backends/captured_step.h"
#include "cinta/train/precision.h"
#include "workload.h"

namespace benchmark {
namespace {

/// Runs steps and writes down what they took. Where they are captured, the first on each batch is not, the second is,
/// and the others are its replays.
class Stepper {
 public:
  Stepper(Workload& workload, optim::Optimizer& optimizer, const std::string& precision, int64_t batches, bool capture)
      : workload_(workload),
        optimizer_(optimizer),
        autocast_(train::parse_precision(precision)),
        capture_(capture),
        on_batch_(static_cast<size_t>(batches)) {
    if (autocast_ && autocast_->low != Dtype::f32) optimizer.keep_shadows(autocast_->low);
  }

  Json run(int64_t steps) {
    std::vector<double> wall, losses;
    const double processor = processor_seconds();
    for (int64_t i = 0; i < steps; ++i) {
      const double start = seconds();
      losses.push_back(step());
      wall.push_back(1e3 * (seconds() - start));
    }
    return {{"wall_ms", wall}, {"processor_ms", 1e3 * (processor_seconds() - processor)}, {"losses", losses}};
  }

  double step() {
    OnBatch& at = on_batch_[static_cast<size_t>(next_) % on_batch_.size()];
    optimizer_.prepare();
    if (at.captured)
      at.captured->replay();
    else if (capture_ && at.loss)
      at.captured.emplace(cpu, [&] { at.loss = run_rows(); });
    else
      at.loss = run_rows();
    ++next_;
    return item(at.loss);
  }

 private:
  struct OnBatch {
    Tensor loss;
    std::optional<CapturedStep> captured;
  };

  Tensor run_rows() {
    optimizer_.zero_gradients();
    Tensor loss;
    {
      const autograd::AutocastScope types(autocast_);
      loss = workload_.loss(next_);
    }
    autograd::backward(loss);
    optimizer_.update();
    if (autocast_ && autocast_->products) autocast_->products->update(optimizer_.gradient_factor());
    return detach(loss);
  }
  Workload& workload_;
  optim::Optimizer& optimizer_;
  std::optional<autograd::Autocast> autocast_;
  bool capture_;
  std::vector<OnBatch> on_batch_;
  int64_t next_ = 0;
};

void export_tensors(Workload& workload, const Json& description, const std::string& path) {
  std::vector<models::NamedTensor> all;
  for (const models::NamedTensor& named : workload.model().named_tensors())
    all.push_back({"model." + named.name, named.tensor});
  for (int64_t i = 0; i < description["batches"]; ++i)
    for (const models::NamedTensor& named : workload.batch(i))
      all.push_back({"batch." + std::to_string(i) + "." + named.name, named.tensor});
  std::vector<Tensor> hold;
  data::save_safetensors(
      path, models::file_tensors(all, hold),
      {{"workload", description.dump()},
       {"hyper_parameters",
        Json{{"sgd_rate", sgd_rate}, {"adamw_rate", adamw_rate}, {"adamw_decay", adamw_decay}}.dump()}});
}

void serve(Stepper& stepper, int64_t resident_before) {
  Json about = machine();
  about["resident_bytes_before"] = resident_before;
  reset_peak_resident();  // the steps are compared, not how the model was built
  std::cout << Json{{"ready", true}, {"machine", about}}.dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    Json out = stepper.run(std::stoll(line));
    out["peak_resident_bytes"] = peak_resident_bytes();
    out["memory_peak"] = memory(true);
    std::cout << out.dump() << std::endl;
  }
}

void report(Stepper& stepper, Json result, int64_t warm_up, int64_t steps, const std::string& path) {
  const Json first = stepper.run(warm_up);
  const int64_t requests = memory_statistics(cpu).system_requests;
  Json timed = stepper.run(steps);
  const Statistics wall(timed["wall_ms"].get<std::vector<double>>());
  const double processor = timed["processor_ms"].get<double>() / static_cast<double>(steps);
  result["machine"] = machine();
  result["first_losses"] = first["losses"];
  result["step_ms"] = json_of(wall);
  result["processor_ms"] = processor;
  result["memory_peak"] = memory(true);
  result["peak_resident_bytes"] = peak_resident_bytes();
  result["system_requests_in_warm_steps"] = memory_statistics(cpu).system_requests - requests;
  std::cout << result["workload"].dump() << "\n" << result["machine"].dump() << "\n";
  std::printf("step %.2f ms best, %.2f median, spread %.1f %%; processor %.2f ms a step\n", wall.best, wall.median,
              100 * wall.spread, processor);
  std::printf("memory %s\nresident %.1f MiB at its peak; %lld blocks asked of the machine in the timed steps\n",
              result["memory_peak"].dump().c_str(), static_cast<double>(peak_resident_bytes()) / (1 << 20),
              result["system_requests_in_warm_steps"].get<long long>());
  std::printf("first losses %s\n", result["first_losses"].dump().c_str());
  result["timed"] = std::move(timed);
  write(path, result);
}

void main_program(Options options) {
  Json description;
  const int64_t thread_count = options.count("threads", int64_t{threads()});
  set_threads(static_cast<int>(thread_count));
  const int64_t resident_before = peak_resident_bytes();
  const std::unique_ptr<Workload> workload = make_workload(options, description);
  const std::string optimizer_name = options.get("optimizer", std::string("adamw"));
  const std::string export_path = options.get("export", std::string()), json = options.get("json", std::string());
  const std::string precision = options.get("precision", std::string("fp32"));
  const int64_t steps = options.count("steps", int64_t{20}), warm_up = options.count("warm-up", 5, 0);
  const bool serving = options.get("serve", int64_t{0}), captured = options.get("captured", int64_t{0});
  options.finish();
  const int64_t captures = captured ? 2 * description["batches"].get<int64_t>() : 0;
  if (!export_path.empty()) return export_tensors(*workload, description, export_path);
  const std::unique_ptr<optim::Optimizer> optimizer = make_optimizer(optimizer_name, *workload);
  Stepper stepper(*workload, *optimizer, precision, description["batches"], captured);
  if (serving) return serve(stepper, resident_before);
  report(stepper,
         {{"workload", description}, {"optimizer", optimizer_name}, {"precision", precision}, {"captured", captured}},
         std::max(warm_up, captures), steps, json);
}

}  // namespace
}  // namespace benchmark

int main(int argc, char** argv) {
  return benchmark::guarded([&] { benchmark::main_program(benchmark::Options(argc, argv)); });
}
