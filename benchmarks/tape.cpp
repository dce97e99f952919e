// What the tape costs: relu on four floats, as a raw kernel call, as an op that is not recorded, as a recorded op, and
// its way back. Chains of ops are built and thrown away as a training step does it. Wanted: at most 300 ns a recorded
// op over the raw call.
#include "cinta/autograd/tape.h"
#include "cinta/autograd/mode.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/ops/activation.h"
#include "common.h"

namespace benchmark {
namespace {

using namespace cinta;
using autograd::clear_gradient;
using autograd::require_gradient;

constexpr int64_t chain = 200;
constexpr double wanted_ns = 300;

/// Nanoseconds of one op, from the best of many blocks of a chain each.
template <class F>
double nanoseconds(F&& run_chain) {
  return 1e9 * time_calls(run_chain, 0.5).best / static_cast<double>(chain);
}

Tensor chain_of_ops(const Tensor& x) {
  Tensor y = x;
  for (int64_t i = 0; i < chain; ++i) y = relu(y);
  return y;
}

void main_program(Options options) {
  const std::string path = options.get("json", std::string());
  options.finish();
  Tensor x = from_values(std::vector<float>{1, -2, 3, -4}, {4});
  const Tensor y = empty_like(x), seed = from_values(std::vector<float>{1, 1, 1, 1}, {4});

  const double raw = nanoseconds([&] {
    for (int64_t i = 0; i < chain; ++i) kernels::relu.forward(cpu, y, x, {});
  });
  const double raw_backward = nanoseconds([&] {
    for (int64_t i = 0; i < chain; ++i) kernels::relu.backward(cpu, y, x, x, {});
  });
  const double allocated = nanoseconds([&] {
    for (int64_t i = 0; i < chain; ++i) kernels::relu.forward(cpu, empty_like(x), x, {});
  });
  const double unrecorded = nanoseconds([&] { chain_of_ops(x); });
  require_gradient(x);
  const double recorded = nanoseconds([&] { chain_of_ops(x); });
  const double both = nanoseconds([&] {
    clear_gradient(x);
    autograd::backward(chain_of_ops(x), {.seeds = {seed}});
  });

  const double cost = recorded - raw, back = both - recorded;
  std::printf("%s\n", machine().dump().c_str());
  std::printf("relu on 4 floats, ns: kernel %.0f, with a new output %.0f, op %.0f, recorded %.0f\n", raw, allocated,
              unrecorded, recorded);
  std::printf(
      "recorded over the kernel %.0f ns (wanted <= %.0f); of it %.0f ns are the output's memory, %.0f the door, "
      "%.0f the record and its end\n",
      cost, wanted_ns, allocated - raw, unrecorded - allocated, recorded - unrecorded);
  std::printf("backward %.0f ns a node, its kernel %.0f\n", back, raw_backward);
  write(path, {{"machine", machine()},
               {"kernel_ns", raw},
               {"kernel_with_output_ns", allocated},
               {"op_ns", unrecorded},
               {"recorded_ns", recorded},
               {"recorded_over_kernel_ns", cost},
               {"backward_ns", back},
               {"backward_kernel_ns", raw_backward}});
}

}  // namespace
}  // namespace benchmark

int main(int argc, char** argv) {
  return benchmark::guarded([&] { benchmark::main_program(benchmark::Options(argc, argv)); });
}
