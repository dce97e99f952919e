// Operands, evaluation, and the reference with noise.
#include "op_evaluate.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/autograd/mode.h"
#include "cinta/autograd/tape.h"
#include "cinta/core/random.h"
#include "cinta/ops/elementwise.h"
#include "contract/tolerance.h"

namespace cinta::testing {
namespace {

constexpr double noise = 1e-6;
constexpr int draws = 6;

template <class T>
T converted(double value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return T(static_cast<float>(value));
}

double rounded(double value, Dtype dtype) {
  return visit(dtype, [value]<class T>() { return static_cast<double>(converted<T>(value)); });
}

Shape sized(Shape shape, int64_t batch_size) {
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] == batch) shape[i] = batch_size;
  return shape;
}

std::vector<double> values_of(const Input& input, uint32_t number, const Setting& setting) {
  const Shape shape = sized(input.shape, setting.batch_size);
  std::vector<double> out(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < out.size(); ++i) {
    const double at = to_uniform(random_word(11, number, 0, i)), value = input.low + (input.high - input.low) * at;
    out[i] = input.whole ? std::floor(value) : rounded(value, setting.rounded_to);
  }
  if (setting.repeated_values && !input.plain && shape.rank() > 0 && shape[0] > 0)
    for (size_t i = 0, row = out.size() / static_cast<size_t>(shape[0]); i < out.size(); ++i) out[i] = out[i % row];
  return out;
}

Shape strides_of(const Shape& shape, Layout layout) {
  Shape strides = contiguous_strides(shape);
  if (layout == Layout::repeated && shape.rank() > 0) strides[0] = 0;
  if (layout == Layout::strided)
    for (int64_t i = 0, stride = 2; i < shape.rank(); stride *= std::max<int64_t>(shape[static_cast<int>(i++)], 1))
      strides[static_cast<int>(i)] = stride;
  return strides;
}

/// A tensor of `values` that lies as `layout` says.
Tensor laid_out(const std::vector<double>& values, const Shape& shape, Dtype dtype, Device device, Layout layout) {
  const int64_t first = layout == Layout::strided ? 3 : 0;
  const Tensor memory = empty({first + 2 * shape.numel() + 1}, dtype, device);
  const Tensor out = memory.with_layout(shape, strides_of(shape, layout), first);
  if (device == meta) return out;
  visit(dtype, [&]<class T>() {
    T* data = out.view().as<T>();
    for (size_t i = 0; i < values.size(); ++i) {
      int64_t offset = 0, rest = static_cast<int64_t>(i);
      for (int dim = shape.rank() - 1; dim >= 0; rest /= shape[dim--]) offset += rest % shape[dim] * out.strides()[dim];
      data[offset] = converted<T>(values[i]);
    }
  });
  return out;
}

/// Multiplies what each op gives by 1 + noise or 1 - noise, where nobody else sees that memory.
struct Noise final : autograd::Observer {
  explicit Noise(uint32_t draw) : draw(draw) {}
  void forward(const char*, Where, std::span<const Tensor> outputs) override {
    for (const Tensor& output : outputs)
      if (output.storage().use_count() == 1) disturb(output);
  }
  void backward(const autograd::Node&, std::span<const Tensor> gradients) override {
    for (const Tensor& gradient : gradients)  // held by its slot and by this list
      if (gradient && gradient.storage().use_count() <= 2) disturb(gradient);
  }
  void disturb(const Tensor& tensor) {
    if (tensor.dtype() != Dtype::f64 || !tensor.contiguous()) return;
    for (double& value : tensor.data<double>()) value *= 1 + (random_word(13, draw, 0, next++) & 1 ? noise : -noise);
  }
  uint32_t draw;
  uint64_t next = 0;
};

Result result_of(const Tensor& tensor, const Shape& shape, Dtype dtype) {
  Result out{tensor ? tensor.shape() : shape, tensor ? tensor.dtype() : dtype, {}};
  if (tensor && tensor.device() != meta) out.values = to_vector<double>(tensor);
  if (!tensor) out.values.assign(static_cast<size_t>(shape.numel()), 0.0);
  return out;
}

/// Weights that every floating type holds exactly, so that no two elements hide each other's errors.
Tensor weights_like(const Tensor& output, uint32_t number) {
  std::vector<double> weights(static_cast<size_t>(output.numel()));
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = (static_cast<double>(random_word(12, number, 0, i) % 17) - 8) / 8;
  return laid_out(weights, output.shape(), output.dtype(), output.device(), Layout::dense);
}

std::vector<std::vector<double>> spread(const std::vector<Result>& want, const std::vector<Result>& disturbed,
                                        std::vector<std::vector<double>> largest) {
  largest.resize(want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    largest[i].resize(want[i].values.size());
    for (size_t j = 0; j < largest[i].size(); ++j)
      largest[i][j] = std::max(largest[i][j], std::abs(disturbed[i].values[j] - want[i].values[j]) / noise);
  }
  return largest;
}

void to_tolerances(std::vector<std::vector<double>>& spreads, const std::vector<Result>& want, double unit,
                   double sum_unit, int64_t longest) {
  for (size_t i = 0; i < want.size(); ++i)
    for (size_t j = 0; j < spreads[i].size(); ++j) {
      const bool exact = !is_floating(want[i].dtype);
      spreads[i][j] = exact ? 0
                            : (4 * unit + sum_unit * static_cast<double>(longest + 16)) *
                                  (std::abs(want[i].values[j]) + spreads[i][j]);
    }
}

std::string first_difference(const char* what, const std::vector<Result>& want,
                             const std::vector<std::vector<double>>& tolerance, const std::vector<Result>& got) {
  if (want.size() != got.size()) return join(what, "s: ", got.size(), " for ", want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (!(want[i].shape == got[i].shape))
      return join(what, " ", i, " has shape ", got[i].shape, " for ", want[i].shape);
    for (size_t j = 0; j < want[i].values.size(); ++j) {
      const double x = got[i].values[j], y = want[i].values[j];
      if (x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= tolerance[i][j]) continue;
      return join(what, " ", i, " at ", j, ": ", x, " for ", y, ", tolerance ", tolerance[i][j], ", off by ", x - y);
    }
  }
  return "";
}

}  // namespace

Operands make_operands(const OpCase& row, const Setting& setting) {
  Operands out;
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    const Input& input = row.inputs[i];
    const Layout layout = input.plain ? Layout::dense : setting.layout;
    out.push_back(laid_out(values_of(input, static_cast<uint32_t>(i), setting), sized(input.shape, setting.batch_size),
                           input.whole ? input.dtype : setting.dtype, setting.device, layout));
  }
  return out;
}

namespace {

/// The operands, the outputs of `function` and the weights of those that are tracked.
struct Run {
  Operands in;
  std::vector<Tensor> leaves, outputs, roots, weights;
  bool differentiable;
  Run(const OpCase& row, const Setting& setting) : in(make_operands(row, setting)), differentiable(row.differentiable) {
    for (size_t i = 0; i < in.size(); ++i)
      if (!row.inputs[i].whole) leaves.push_back(autograd::require_gradient(in[i]));
  }
  void forward(const Function& function) {
    outputs = function(in);
    roots.clear();
    weights.clear();
    for (const Tensor& output : outputs) {
      if (!autograd::tracked(output)) continue;
      weights.push_back(weights_like(output, static_cast<uint32_t>(roots.size())));
      roots.push_back(output);
    }
    CHECK(roots.empty() == !differentiable);
  }
};

}  // namespace

Evaluation evaluate(const OpCase& row, const Function& function, const Setting& setting) {
  Run run(row, setting);
  run.forward(function);
  Evaluation out;
  for (const Tensor& output : run.outputs) out.outputs.push_back(result_of(output, {}, setting.dtype));
  if (run.roots.empty()) return out;
  const std::vector<Tensor> gradients = autograd::grad(run.roots, run.leaves, {.seeds = run.weights});
  for (size_t i = 0; i < gradients.size(); ++i)
    out.gradients.push_back(result_of(gradients[i], run.leaves[i].shape(), run.leaves[i].dtype()));
  return out;
}

Evaluation evaluate_accumulated(const OpCase& row, const Setting& setting) {
  Run run(row, setting);
  for (int walk = 0; walk < 2; ++walk) {
    run.forward(row.run);
    for (size_t i = 0; i < run.roots.size(); ++i)
      autograd::backward(run.roots[i], {.retain_graph = true, .seeds = {run.weights[i]}});
  }
  Evaluation out;
  for (const Tensor& output : run.outputs) out.outputs.push_back(result_of(output, {}, setting.dtype));
  for (const Tensor& leaf : run.leaves) {
    if (!row.differentiable) break;
    out.gradients.push_back(result_of(autograd::gradient(leaf), leaf.shape(), leaf.dtype()));
    for (double& value : out.gradients.back().values) value /= 2;
  }
  return out;
}

Expectation expect(const OpCase& row, const Setting& setting) {
  Setting exact = setting;
  exact.device = reference;
  exact.dtype = Dtype::f64;
  exact.layout = Layout::dense;
  Expectation out;
  out.want = evaluate(row, row.run, exact);
  for (uint32_t draw = 0; draw < draws; ++draw) {
    Noise observer(draw);
    autograd::Scoped watching(&autograd::Mode::observer, static_cast<autograd::Observer*>(&observer));
    OpCase noisy = row;
    noisy.run = [&](const Operands& operands) {
      for (const Tensor& operand : operands) observer.disturb(operand);
      return row.run(operands);
    };
    const Evaluation found = evaluate(noisy, noisy.run, exact);
    out.output_tolerance = spread(out.want.outputs, found.outputs, std::move(out.output_tolerance));
    out.gradient_tolerance = spread(out.want.gradients, found.gradients, std::move(out.gradient_tolerance));
  }
  int64_t longest = 0;
  for (const Input& input : row.inputs) longest = std::max(longest, sized(input.shape, setting.batch_size).numel());
  const double unit = contract::rounding_unit(setting.dtype);
  const double sum_unit = std::min(unit, contract::rounding_unit(Dtype::f32));
  to_tolerances(out.output_tolerance, out.want.outputs, unit, sum_unit, longest);
  to_tolerances(out.gradient_tolerance, out.want.gradients, unit, sum_unit, longest);
  return out;
}

std::string difference(const Expectation& expected, const Evaluation& got) {
  const std::string found = first_difference("output", expected.want.outputs, expected.output_tolerance, got.outputs);
  if (!found.empty()) return found;
  return first_difference("gradient", expected.want.gradients, expected.gradient_tolerance, got.gradients);
}

}  // namespace cinta::testing

using namespace cinta;
using namespace cinta::testing;

TEST_CASE("the op table tells rounding from errors", "[ops]") {
  auto square = [](const Operands& x) { return x[0] * x[0]; };
  const OpCase row("multiply", {real({batch, 50})}, square);
  const Expectation expected = expect(row, {});
  auto found = [&](auto function) {
    const OpCase other("multiply", row.inputs, function);
    return difference(expected, evaluate(other, other.run, {}));
  };
  CHECK(found(square) == "");
  CHECK(found([](const Operands& x) { return exp(log(abs(x[0])) * 2); }) == "");
  CHECK(found([](const Operands& x) { return x[0] * x[0] * (1 + 1e-4); }).starts_with("output 0 at 0"));
  // Half of the gradient is missing.
  CHECK(found([](const Operands& x) { return x[0] * detach(x[0]); }).starts_with("gradient 0 at 0"));
}
