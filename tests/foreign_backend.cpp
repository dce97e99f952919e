// Backends loaded at run time: one that trains, and every way in which a file is none.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cinta/autograd/mode.h"
#include "cinta/autograd/tape.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/core/context.h"
#include "cinta/core/device.h"
#include "cinta/core/plugin.h"
#include "cinta/core/runtime.h"
#include "cinta/data/batches.h"
#include "cinta/data/digits.h"
#include "cinta/models/mlp.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/shape.h"
#include "cinta/optim/adamw.h"
#include "cinta/optim/sgd.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::testing;
using Catch::Matchers::Contains;

namespace {

/// The build puts tests/plugins/<name>.cpp into lib/<name>.so beside the folder of this program.
std::string plugin(const std::string& name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib" / (name + ".so"))
      .string();
}
Device npu() { return load_backend(plugin("npu")); }

struct Curve {
  std::vector<double> losses;
  std::vector<float> weights;
};

/// A perceptron's first steps on drawn digits.
template <class Optimizer, class Options>
Curve train(Device device, const Options& options) {
  const data::Examples digits = data::generate_digits(320, 1);
  const data::ExampleBatches batches(digits, 32, 1);
  models::Mlp mlp({64, 32, 10}, 7, Activation::gelu, device);
  Optimizer optimizer(mlp.parameters(), options);
  Curve curve;
  for (int64_t step = 0; step < 40; ++step) {
    const data::Batch batch = batches.batch(step);
    optimizer.zero_gradients();
    const Tensor logits = mlp(from_values(batch.inputs, {32, 64}, device));
    const Tensor loss = cross_entropy(logits, from_values(batch.labels, {32}, device));
    autograd::backward(loss);
    optimizer.step({.max_norm = 1.0});
    curve.losses.push_back(item(loss));
  }
  for (const optim::Parameter& parameter : mlp.parameters())
    for (float weight : to_vector<float>(parameter.tensor)) curve.weights.push_back(weight);
  return curve;
}

template <class Optimizer, class Options>
void check_same_training(const Options& options) {
  const Curve there = train<Optimizer>(npu(), options), here = train<Optimizer>(cpu, options);
  CHECK(there.losses == here.losses);  // the borrowed arithmetic is the same, so the bits are
  CHECK(there.weights == here.weights);
  CHECK(there.losses.back() < 0.7 * there.losses.front());
}

/// Another machine whose memory the host cannot touch: its addresses are 2^60 more than the host's.
class Island final : public Runtime {
 public:
  void* allocate(Device, int64_t bytes) override { return moved(std::malloc(static_cast<size_t>(bytes)), distance); }
  void release(Device, void* data, int64_t) noexcept override { std::free(moved(data, -distance)); }
  void copy(Stream, void* destination, const void* source, int64_t bytes) override {
    std::memcpy(mine(destination), mine(const_cast<void*>(source)), static_cast<size_t>(bytes));
  }
  bool host_accessible() const override { return false; }

 private:
  static constexpr int64_t distance = int64_t{1} << 60;
  static void* moved(void* data, int64_t by) { return reinterpret_cast<void*>(reinterpret_cast<intptr_t>(data) + by); }
  static void* mine(void* data) { return reinterpret_cast<intptr_t>(data) & distance ? moved(data, -distance) : data; }
};

}  // namespace

TEST_CASE("tensors go from one device to another whose memory neither knows of", "[foreign_backend]") {
  static Island island;
  const Device far = claim_backend("island", island);
  const std::vector<float> numbers{1, 2, 3, 4, 5};
  const Tensor x = from_values<float>(numbers, {5}, npu()), y = empty({5}, Dtype::f32, far);
  copy_bytes(y, x);
  CHECK(to_vector<float>(y) == numbers);
  const Tensor z = empty({5}, Dtype::f32, npu());
  copy_bytes(z, y);
  CHECK(to_vector<float>(z) == numbers);
}

TEST_CASE("a backend from outside trains a perceptron", "[foreign_backend]") {
  CHECK(name_of(npu()) == "npu");
  CHECK(parse_device("npu") == npu());
  check_same_training<optim::Sgd>(optim::SgdOptions{.rate = 0.02, .momentum = 0.9});
  check_same_training<optim::AdamW>(optim::AdamWOptions{.rate = 5e-3});
  CHECK(memory_statistics(npu()).requests > 0);
}

TEST_CASE("the memory of a backend from outside is its own", "[foreign_backend]") {
  const Tensor x = from_values<float>({1, 2, 3, 4, 5, 6}, {2, 3}, npu());
  CHECK(to_vector<float>(transpose(x, 0, 1)) == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(to_vector<float>(to(to(x, cpu), npu())) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK_THAT(error_of<DeviceError>([&] { (void)x.data<float>(); }), Contains("host") && Contains("f32[2,3]@npu"));
  CHECK_THAT(error_of<DeviceError>([&] { add(x, to(x, cpu)); }), Contains("@npu") && Contains("@cpu"));
}

TEST_CASE("a bad label on a backend from outside is found", "[foreign_backend]") {
  const Tensor logits = from_values(std::vector<float>(20), {2, 10}, npu());
  const Tensor loss = cross_entropy(logits, from_values<int64_t>({3, 10}, {2}, npu()));
  CHECK_THAT(error_of<ValueError>([&] { item(loss); }), Contains("index 10 at position 1") && Contains("npu"));
}

TEST_CASE("a kernel that a backend does not have, or not in this type, is named before memory is asked for",
          "[foreign_backend]") {
  const Tensor x = from_values<float>({1, 2}, {2}, npu());
  const Tensor wide = from_values<double>({1, 2, 3, 4}, {2, 2}, npu());
  const int64_t requests = memory_statistics(npu()).requests;
  CHECK_THAT(error_of<DeviceError>([&] { softplus(x); }),
             Contains("[softplus] the kernel softplus is not implemented by backend npu, given f32[2]@npu, "
                      "foreign_backend.cpp:"));
  CHECK_THAT(error_of<DtypeError>([&] { matmul(wide, wide); }),
             Contains("[matmul] on npu the kernel matmul computes in f32, f16") && Contains("given f64[2,2]@npu") &&
                 Contains("foreign_backend.cpp:"));
  // Of an op written with others, any of its rows may be the one that is missing.
  CHECK_THAT(error_of<DeviceError>([&] { mean(x); }), Contains("[mean] the kernel affine is not implemented"));
  CHECK_THAT(error_of<DeviceError>([&] { var(x); }), Contains("[var] the kernel affine is not implemented"));
  CHECK_THAT(error_of<DeviceError>([&] { mse(x, x); }), Contains("[mse] the kernel subtract is not implemented"));
  CHECK_THAT(error_of<DeviceError>([&] { logsumexp(x); }), Contains("[logsumexp] the kernel exp is not implemented"));
  CHECK(memory_statistics(npu()).requests == requests);
  CHECK_THROWS_AS(kernels::softplus.forward(npu(), x, x, {}), DeviceError);
}

TEST_CASE("loading a backend again gives the same device", "[foreign_backend]") { CHECK(npu() == npu()); }

TEST_CASE("a file that is no backend is refused with the reason", "[foreign_backend]") {
  const auto refusal = [](const std::string& path) {
    const std::string message = error_of<FileError>([&] { load_backend(path); });
    CHECK_THAT(message, Contains(path));
    return message;
  };
  CHECK_THAT(refusal("no/such/backend.so"), Contains("No such file"));
  CHECK_THAT(refusal("nosuch.so"), Contains("No such file"));
  CHECK_THAT(refusal(plugin("no_backend")), Contains("exports no cinta_backend_abi_version"));
  CHECK_THAT(refusal(plugin("half_backend")), Contains("exports no cinta_backend_register"));
  CHECK_THAT(refusal(plugin("old_backend")), Contains(join("version ", backend_abi_version + 41)) &&
                                                 Contains(join("has version ", backend_abi_version)));
  const Scratch scratch;
  write_bytes(scratch / "text.so", "no library");
  CHECK_THAT(refusal(scratch / "text.so"), Contains("cannot load"));
  const std::string whole = read_bytes(plugin("npu"));
  for (const size_t bytes : {10, 100, 6000, 20000}) {  // what lies behind the segments, as debug data, is not missed
    write_bytes(scratch / "part.so", whole.substr(0, bytes));
    CHECK_THAT(refusal(scratch / "part.so"), Contains(bytes < 64 ? "cannot load" : "the file is truncated"));
  }
  REQUIRE(::mkfifo((scratch / "pipe.so").c_str(), 0600) == 0);
  CHECK_THAT(refusal(scratch / "pipe.so"), Contains("is a pipe"));
}

TEST_CASE("what a refused backend has claimed before it was asked stays whole", "[foreign_backend]") {
  CHECK_THAT(error_of<FileError>([] { load_backend(plugin("old_backend")); }), Contains("version "));
  CHECK(to_vector<float>(from_values<float>({1}, {1}, parse_device("early"))) == std::vector<float>{1});
}

TEST_CASE("a backend cannot take a name that is taken", "[foreign_backend]") {
  CHECK_THAT(error_of<DeviceError>([] { load_backend(plugin("false_cpu")); }), Contains("'cpu' is taken"));
  CHECK(to_vector<float>(from_values<float>({1}, {1}, cpu)) == std::vector<float>{1});
}
