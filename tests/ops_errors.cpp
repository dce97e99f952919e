// Bad calls of every op and the exact errors they give: thrown before any memory is asked for.
#include <catch2/catch.hpp>
#include <functional>
#include <regex>
#include <set>
#include <typeinfo>

#include "cinta/autograd/node.h"
#include "cinta/core/context.h"
#include "cinta/ops/activation.h"
#include "cinta/ops/attention.h"
#include "cinta/ops/dropout.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/embedding.h"
#include "cinta/ops/loss.h"
#include "cinta/ops/matmul.h"
#include "cinta/ops/normalize.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/round.h"
#include "cinta/ops/shape.h"
#include "cinta/ops/softmax.h"
#include "op_table.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

using In = const Operands&;
using Call = std::function<void(In)>;

/// Names of the ops that a bad call was tried of.
std::set<std::string> tried;

/// The call throws an E of this text and the line in this file, and asks for no memory.
template <class E>
void bad(const std::string& text, const Operands& in, const Call& call) {
  INFO(text);
  tried.insert(text.substr(1, text.find(']') - 1));
  const int64_t requests = memory_statistics(cpu).requests;
  std::string got = "no error";
  try {
    call(in);
  } catch (const InputError& error) {
    got = error.what();
    CHECK(typeid(error) == typeid(E));
  }
  CHECK(memory_statistics(cpu).requests == requests);
  const std::regex place(", ops_errors\\.cpp:[0-9]+$");
  CHECK(std::regex_search(got, place));
  CHECK(std::regex_replace(got, place, "") == text);
}

Tensor f(const Shape& shape, Device device = cpu) { return full(shape, 1, Dtype::f32, device); }
Tensor d(const Shape& shape) { return full(shape, 1, Dtype::f64); }
Tensor i(const Shape& shape, Device device = cpu) { return full(shape, 0, Dtype::i64, device); }
Tensor tracked(const Shape& shape) {
  Tensor out = f(shape);
  return autograd::require_gradient(out);
}

void one_tensor() {
  const std::pair<const char*, std::function<Tensor(const Tensor&)>> functions[] = {
      {"affine", [](const Tensor& x) { return affine(x, 2, 1); }},
      {"exp", [](const Tensor& x) { return exp(x); }},
      {"log", [](const Tensor& x) { return log(x); }},
      {"sqrt", [](const Tensor& x) { return sqrt(x); }},
      {"rsqrt", [](const Tensor& x) { return rsqrt(x); }},
      {"pow", [](const Tensor& x) { return pow(x, 2); }},
      {"abs", [](const Tensor& x) { return abs(x); }},
      {"erf", [](const Tensor& x) { return erf(x); }},
      {"clamp", [](const Tensor& x) { return clamp(x, 0, 1); }},
      {"relu", [](const Tensor& x) { return relu(x); }},
      {"leaky_relu", [](const Tensor& x) { return leaky_relu(x); }},
      {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"gelu_tanh", [](const Tensor& x) { return gelu_tanh(x); }},
      {"silu", [](const Tensor& x) { return silu(x); }},
      {"tanh", [](const Tensor& x) { return tanh(x); }},
      {"sigmoid", [](const Tensor& x) { return sigmoid(x); }},
      {"softplus", [](const Tensor& x) { return softplus(x); }},
      {"elu", [](const Tensor& x) { return elu(x); }},
      {"sum", [](const Tensor& x) { return sum(x); }},
      {"mean", [](const Tensor& x) { return mean(x); }},
      {"var", [](const Tensor& x) { return var(x); }},
      {"max", [](const Tensor& x) { return max(x); }},
      {"logsumexp", [](const Tensor& x) { return logsumexp(x); }},
      {"round_to", [](const Tensor& x) { return round_to(x, Dtype::bf16); }},
  };
  for (const auto& [name, function] : functions) {
    auto call = [&](In x) { function(x[0]); };
    bad<DtypeError>(join("[", name, "] x is a floating-point tensor, given i64[2,3]@cpu"), {i({2, 3})}, call);
    bad<DtypeError>(join("[", name, "] x is a floating-point tensor, given (no tensor)"), {Tensor()}, call);
  }
}

void two_tensors() {
  const std::pair<const char*, std::function<Tensor(const Tensor&, const Tensor&)>> functions[] = {
      {"add", [](const Tensor& x, const Tensor& y) { return add(x, y); }},
      {"subtract", [](const Tensor& x, const Tensor& y) { return subtract(x, y); }},
      {"multiply", [](const Tensor& x, const Tensor& y) { return multiply(x, y); }},
      {"divide", [](const Tensor& x, const Tensor& y) { return divide(x, y); }},
      {"equal", [](const Tensor& x, const Tensor& y) { return equal(x, y); }},
      {"not_equal", [](const Tensor& x, const Tensor& y) { return not_equal(x, y); }},
      {"less", [](const Tensor& x, const Tensor& y) { return less(x, y); }},
      {"less_equal", [](const Tensor& x, const Tensor& y) { return less_equal(x, y); }},
      {"greater", [](const Tensor& x, const Tensor& y) { return greater(x, y); }},
      {"greater_equal", [](const Tensor& x, const Tensor& y) { return greater_equal(x, y); }},
  };
  for (const auto& [name, function] : functions) {
    auto call = [&](In x) { function(x[0], x[1]); };
    bad<DtypeError>(join("[", name, "] operands have one type: f32[2]@cpu with f64[2]@cpu"), {f({2}), d({2})}, call);
    bad<DtypeError>(join("[", name, "] operands have one type: f32[2]@cpu with (no tensor)"), {f({2}), Tensor()}, call);
    bad<DeviceError>(join("[", name, "] operands lie on one device: f32[2]@cpu with f32[2]@reference"),
                     {f({2}), f({2}, reference)}, call);
    bad<ShapeError>(join("[", name, "] shapes do not broadcast: [2,3] with [4,1,2] (3 != 2 at dimension -1)"),
                    {f({2, 3}), f({4, 1, 2})}, call);
  }
  const char* apart = "do not broadcast: [2,3] with [4,5] (3 != 5 at dimension -1)";
  for (const auto& [name, call] :
       std::initializer_list<std::pair<const char*, Call>>{{"add", [](In x) { x[0] + x[1]; }},
                                                           {"subtract", [](In x) { x[0] - x[1]; }},
                                                           {"multiply", [](In x) { x[0] * x[1]; }},
                                                           {"divide", [](In x) { x[0] / x[1]; }}})
    bad<ShapeError>(join("[", name, "] shapes ", apart), {f({2, 3}), f({4, 5})}, call);
  const std::pair<const char*, Call> with_a_number[] = {
      {"multiply", [](In x) { -x[0]; }},    {"multiply", [](In x) { x[0] * 2; }}, {"multiply", [](In x) { 2 * x[0]; }},
      {"add", [](In x) { x[0] + 2; }},      {"add", [](In x) { 2 + x[0]; }},      {"subtract", [](In x) { x[0] - 2; }},
      {"subtract", [](In x) { 2 - x[0]; }}, {"divide", [](In x) { x[0] / 2; }},   {"divide", [](In x) { 2 / x[0]; }},
      {"pow", [](In x) { pow(x[0], 2); }},  {"pow", [](In x) { pow(2, x[0]); }}};
  for (const auto& [name, call] : with_a_number)
    bad<DtypeError>(join("[", name, "] x is a floating-point tensor, given i64[2]@cpu"), {i({2})}, call);
  bad<DtypeError>("[pow] floating-point operands: i64[2]@cpu with i64[2]@cpu", {i({2})}, [](In x) { pow(x[0], x[0]); });
  bad<DtypeError>("[where] the tensor beside a number is a floating-point tensor, given i64[2]@cpu", {i({2})},
                  [](In x) { cinta::where(x[0], x[0], 1); });
  bad<ValueError>("[less] a tensor beside a number, given (no tensor)", {Tensor()}, [](In x) { less(0, x[0]); });
  bad<ValueError>("[add] at least one operand is a tensor, given two numbers", {}, [](In) { add(1, 2); });
  bad<ValueError>("[less] at least one operand is a tensor, given two numbers", {}, [](In) { less(1, 2); });
  bad<DtypeError>("[add] floating-point operands: i64[2]@cpu with i64[2]@cpu", {i({2}), i({2})},
                  [](In x) { add(x[0], x[1]); });
}

void products() {
  bad<ValueError>("[clamp] the lower bound is not above the upper: 2 > 1", {f({2})}, [](In x) { clamp(x[0], 2, 1); });
  bad<DtypeError>("[where] the condition is bool: f32[2]@cpu", {f({2})}, [](In x) { cinta::where(x[0], x[0], x[0]); });
  bad<DeviceError>("[where] one device: bool[2]@reference with f32[2]@cpu",
                   {full({2}, 1, Dtype::boolean, reference), f({2})}, [](In x) { cinta::where(x[0], x[1], x[1]); });
  bad<ShapeError>("[where] shapes do not broadcast: [2] with [3] (2 != 3 at dimension -1)",
                  {full({3}, 1, Dtype::boolean), f({2})}, [](In x) { cinta::where(x[0], x[1], x[1]); });

  auto product = [](In x) { matmul(x[0], x[1]); };
  bad<ShapeError>("[matmul] inner sizes differ: lhs f32[32,128]@cpu x rhs f32[64,10]@cpu (128 != 64)",
                  {f({32, 128}), f({64, 10})}, product);
  bad<ShapeError>("[matmul] operands have at least two dimensions: lhs f32[3]@cpu x rhs f32[3,2]@cpu",
                  {f({3}), f({3, 2})}, product);
  bad<ShapeError>("[matmul] shapes do not broadcast: [2] with [3] (2 != 3 at dimension -1)",
                  {f({2, 4, 5}), f({3, 5, 4})}, product);
  bad<DtypeError>("[matmul] operands of one floating-point type: lhs f32[2,2]@cpu x rhs f64[2,2]@cpu",
                  {f({2, 2}), d({2, 2})}, product);
  bad<DtypeError>("[matmul] operands of one floating-point type: lhs f32[2,2]@cpu x rhs (no tensor)",
                  {f({2, 2}), Tensor()}, product);
  bad<DeviceError>("[matmul] operands on one device: lhs f32[2,2]@cpu x rhs f32[2,2]@reference",
                   {f({2, 2}), f({2, 2}, reference)}, product);

  auto layer = [](In x) { linear(x[0], x[1], x[2]); };
  bad<ShapeError>("[linear] x[..,K] and w[N,K]: x f32[2,3]@cpu, w f32[3,4]@cpu", {f({2, 3}), f({3, 4}), Tensor()},
                  layer);
  bad<ShapeError>("[linear] bias[N] for w[N,K]: w f32[4,3]@cpu, bias f32[3]@cpu", {f({2, 3}), f({4, 3}), f({3})},
                  layer);
  bad<DtypeError>("[linear] operands of one floating-point type: lhs i64[2,3]@cpu x rhs i64[4,3]@cpu",
                  {i({2, 3}), i({4, 3}), Tensor()}, layer);
}

void reductions() {
  bad<ShapeError>("[sum] dimension 2 is outside a tensor of rank 2", {f({2, 3})}, [](In x) { sum(x[0], {2}); });
  bad<ShapeError>("[sum] each dimension is given once, -1 is not: f32[2,3]@cpu", {f({2, 3})}, [](In x) {
    sum(x[0], {1, -1});
  });
  bad<ShapeError>("[mean] at least one element a result: f32[0,3]@cpu", {f({0, 3})}, [](In x) { mean(x[0]); });
  bad<ShapeError>("[var] more than 1 elements a result: f32[4,1]@cpu gives 1", {f({4, 1})},
                  [](In x) { var(x[0], {1}); });
  bad<ShapeError>("[max] at least one element a result: f32[2,0]@cpu", {f({2, 0})}, [](In x) { max(x[0], {1}); });
  bad<ShapeError>("[argmax] at least one element a result: f32[2,0]@cpu", {f({2, 0})}, [](In x) { argmax(x[0], {1}); });
  bad<ShapeError>("[argmax] at least one element a result: f32[2,0]@cpu", {f({2, 0})}, [](In x) { argmax(x[0]); });
  bad<ShapeError>("[argmax] dimension 2 is outside a tensor of rank 2", {f({2, 3})}, [](In x) {
    argmax(x[0], {0, 2});
  });
  bad<DtypeError>("[argmax] x is a floating-point tensor, given i64[2]@cpu", {i({2})}, [](In x) { argmax(x[0]); });
  bad<ShapeError>("[logsumexp] at least one element a result: f32[2,0]@cpu", {f({2, 0})},
                  [](In x) { logsumexp(x[0], {1}); });
  bad<ShapeError>("[sum_to] [2,5] broadcasts to the shape of f32[2,3]@cpu", {f({2, 3})}, [](In x) {
    sum_to(x[0], {2, 5});
  });
}

void shapes() {
  const std::pair<const char*, Call> functions[] = {
      {"contiguous", [](In x) { contiguous(x[0]); }}, {"reshape", [](In x) { reshape(x[0], {1}); }},
      {"permute", [](In x) { permute(x[0], {0}); }},  {"transpose", [](In x) { transpose(x[0], 0, 0); }},
      {"slice", [](In x) { slice(x[0], 0, 0, 0); }},  {"expand", [](In x) { expand(x[0], {1}); }},
      {"squeeze", [](In x) { squeeze(x[0], 0); }},    {"unsqueeze", [](In x) { unsqueeze(x[0], 0); }},
      {"split", [](In x) { split(x[0], {1}, 0); }},   {"pad", [](In x) { pad(x[0], 0, 1, 1); }},
      {"cast", [](In x) { cast(x[0], Dtype::f64); }}, {"to", [](In x) { to(x[0], cpu); }},
      {"fill_", [](In x) { fill_(x[0], 1); }},        {"copy_", [](In x) { copy_(x[0], x[0]); }},
      {"add_", [](In x) { add_(x[0], x[0]); }},       {"scale_", [](In x) { scale_(x[0], 1); }},
  };
  for (const auto& [name, call] : functions) bad<ValueError>(join("[", name, "] a tensor is given"), {Tensor()}, call);

  bad<ShapeError>("[empty] sizes are not negative and their product fits 63 bits: [-1]", {}, [](In) { full({-1}, 0); });
  bad<ShapeError>("[arange] a count is not negative, given -1", {}, [](In) { arange(-1); });
  const Tensor x = f({2, 3});
  bad<ShapeError>("[reshape] at most one size is -1: [-1,-1]", {x}, [](In x) { reshape(x[0], {-1, -1}); });
  bad<ShapeError>("[reshape] as many elements as before: f32[2,3]@cpu to [4,-1]", {x}, [](In x) {
    reshape(x[0], {4, -1});
  });
  bad<ShapeError>("[permute] as many dimensions as f32[2,3]@cpu has, given 1", {x}, [](In x) { permute(x[0], {0}); });
  bad<ShapeError>("[permute] each dimension is given once, 1 is not", {x}, [](In x) { permute(x[0], {1, 1}); });
  bad<ShapeError>("[transpose] dimension 2 is outside a tensor of rank 2", {x}, [](In x) { transpose(x[0], 0, 2); });
  bad<ShapeError>("[slice] 0 <= begin <= end <= 3 in dimension 1 of f32[2,3]@cpu, given 2 and 4", {x},
                  [](In x) { slice(x[0], 1, 2, 4); });
  bad<ShapeError>("[expand] only sizes of 1 are repeated: f32[2,3]@cpu to [3]", {x}, [](In x) { expand(x[0], {3}); });
  bad<ShapeError>("[squeeze] dimension 1 has size 1: f32[2,3]@cpu", {x}, [](In x) { squeeze(x[0], 1); });
  bad<ShapeError>("[unsqueeze] dimension 3 is outside a tensor of rank 3", {x}, [](In x) { unsqueeze(x[0], 3); });
  const Call joined = [](In x) { concat(x, 0); };
  bad<ShapeError>("[concat] at least one tensor with dimensions", {}, joined);
  bad<DtypeError>("[concat] one type: f32[2,3]@cpu with f64[2,3]@cpu", {x, d({2, 3})}, joined);
  bad<DeviceError>("[concat] one device: f32[2,3]@cpu with f32[2,3]@reference", {x, f({2, 3}, reference)}, joined);
  bad<ShapeError>("[concat] equal sizes but in dimension 0: f32[2,3]@cpu with f32[2,4]@cpu", {x, f({2, 4})}, joined);
  bad<ShapeError>("[split] sizes add up to 3, given 4: f32[2,3]@cpu", {x}, [](In x) { split(x[0], {2, 2}, 1); });
  bad<ShapeError>("[split] sizes are not negative, given -1", {x}, [](In x) { split(x[0], {4, -1}, 1); });
  bad<ShapeError>("[pad] sizes are not negative, given -1 and 0", {x}, [](In x) { pad(x[0], 0, -1, 0); });
  bad<DeviceError>("[to] a tensor with memory, to be moved to cpu: f32[2]@meta", {f({2}, meta)},
                   [](In x) { to(x[0], cpu); });
  bad<ValueError>("[fill_] a tensor the tape follows is written under NoGrad only: f32[2]@cpu", {tracked({2})},
                  [](In x) { fill_(x[0], 1); });
  bad<ShapeError>("[copy_] one shape: f32[2,3]@cpu with f32[3]@cpu", {x, f({3})}, [](In x) { copy_(x[0], x[1]); });
  bad<DeviceError>("[add_] one device: f32[2,3]@cpu with f32[2,3]@reference", {x, f({2, 3}, reference)},
                   [](In x) { add_(x[0], x[1]); });
  bad<DtypeError>("[scale_] a floating-point tensor: i64[2]@cpu", {i({2})}, [](In x) { scale_(x[0], 2); });
}

void losses() {
  bad<DtypeError>("[softmax] x is a floating-point tensor, given i64[2]@cpu", {i({2})}, [](In x) { softmax(x[0]); });
  bad<ShapeError>("[softmax] dimension -1 is outside a tensor of rank 0", {f({})}, [](In x) { softmax(x[0]); });
  bad<DtypeError>("[log_softmax] x is a floating-point tensor, given (no tensor)", {Tensor()},
                  [](In x) { log_softmax(x[0]); });
  bad<ShapeError>("[log_softmax] dimension 2 is outside a tensor of rank 1", {f({2})},
                  [](In x) { log_softmax(x[0], 2); });

  auto loss = [](In x) { cross_entropy(x[0], x[1]); };
  bad<DtypeError>("[cross_entropy] logits is a floating-point tensor, given (no tensor)", {Tensor(), i({2})}, loss);
  bad<DtypeError>("[cross_entropy] labels is i64, given f32[2]@cpu", {f({2, 3}), f({2})}, loss);
  bad<DtypeError>("[cross_entropy] labels is i64, given (no tensor)", {f({2, 3}), Tensor()}, loss);
  bad<DeviceError>("[cross_entropy] labels lies on the device of f32[2,3]@cpu, given i64[2]@reference",
                   {f({2, 3}), i({2}, reference)}, loss);
  bad<ShapeError>("[cross_entropy] logits[..,V] with V > 0, given f32[2,0]@cpu", {f({2, 0}), i({2})}, loss);
  bad<ShapeError>("[cross_entropy] labels[..] for logits[..,V]: logits f32[2,3]@cpu, labels i64[3]@cpu",
                  {f({2, 3}), i({3})}, loss);
  bad<ValueError>("[cross_entropy] label_smoothing lies in [0, 1], given 1.5", {f({2, 3}), i({2})},
                  [](In x) { cross_entropy(x[0], x[1], {.label_smoothing = 1.5}); });
  bad<DtypeError>("[count_items] labels is i64, given f32[2]@cpu", {f({2})}, [](In x) { count_items(x[0]); });
  bad<DtypeError>("[count_items] a count is floating-point, given i64", {i({2})},
                  [](In x) { count_items(x[0], -100, Dtype::i64); });
  auto right = [](In x) { count_correct(x[0], x[1]); };
  bad<DtypeError>("[count_correct] logits is a floating-point tensor, given i64[2]@cpu", {i({2}), i({2})}, right);
  bad<DtypeError>("[count_correct] labels is i64, given f32[2]@cpu", {f({2, 3}), f({2})}, right);
  bad<ShapeError>("[count_correct] labels[..] for logits[..,V]: logits f32[2,3]@cpu, labels i64[3]@cpu",
                  {f({2, 3}), i({3})}, right);
  bad<ShapeError>("[mse] prediction and target have one shape: f32[2]@cpu and f32[3]@cpu", {f({2}), f({3})},
                  [](In x) { mse(x[0], x[1]); });
  bad<ShapeError>("[mse] the mean is over at least one element: f32[0]@cpu", {f({0}), f({0})},
                  [](In x) { mse(x[0], x[1]); });
  bad<DtypeError>("[bce_with_logits] target has the type of f32[2]@cpu, given i64[2]@cpu", {f({2}), i({2})},
                  [](In x) { bce_with_logits(x[0], x[1]); });
  bad<DeviceError>("[kl_div] log_q lies on the device of f32[2]@cpu, given f32[2]@reference",
                   {f({2}), f({2}, reference)}, [](In x) { kl_div(x[0], x[1]); });
  bad<ShapeError>("[kl_div] at least one dimension, given f32[]@cpu", {f({}), f({})}, [](In x) { kl_div(x[0], x[1]); });
}

void norms() {
  auto norm = [](In x) { layer_norm(x[0], x[1], x[2]); };
  bad<DtypeError>("[layer_norm] x is a floating-point tensor, given i64[2,3]@cpu", {i({2, 3}), {}, {}}, norm);
  bad<ShapeError>("[layer_norm] x[..,N] with N > 0, given f32[2,0]@cpu", {f({2, 0}), {}, {}}, norm);
  bad<ShapeError>("[layer_norm] gain[N] for x[..,N]: x f32[2,3]@cpu, gain f32[2]@cpu", {f({2, 3}), f({2}), {}}, norm);
  bad<DtypeError>("[layer_norm] bias has the type of f32[2,3]@cpu, given f64[3]@cpu", {f({2, 3}), f({3}), d({3})},
                  norm);
  bad<DeviceError>("[layer_norm] gain lies on the device of f32[2,3]@cpu, given f32[3]@reference",
                   {f({2, 3}), f({3}, reference), {}}, norm);
  const Tensor one = tracked({3});
  bad<ValueError>("[layer_norm] gain and bias are two tensors, given one: f32[3]@cpu", {f({2, 3}), one, one}, norm);
  bad<ValueError>("[layer_norm] eps is not negative, given -1", {f({2})}, [](In x) { layer_norm(x[0], {}, {}, -1); });
  bad<ShapeError>("[rms_norm] x[..,N] with N > 0, given f32[]@cpu", {f({})}, [](In x) { rms_norm(x[0]); });
  bad<ShapeError>("[rms_norm] gain[N] for x[..,N]: x f32[2,3]@cpu, gain f32[3,1]@cpu", {f({2, 3}), f({3, 1})},
                  [](In x) { rms_norm(x[0], x[1]); });

  auto residual = [](In x) { residual_norm(x[0], x[1], x[2], {}, {}); };
  bad<DtypeError>("[residual_norm] residual has the type of f32[2,3]@cpu, given (no tensor)", {f({2, 3}), {}, {}},
                  residual);
  bad<ShapeError>("[residual_norm] x and residual have one shape: f32[2,3]@cpu and f32[1,3]@cpu",
                  {f({2, 3}), {}, f({1, 3})}, residual);
  bad<ShapeError>("[residual_norm] x_bias[N] for x[..,N]: x f32[2,3]@cpu, x_bias f32[2]@cpu",
                  {f({2, 3}), f({2}), f({2, 3})}, residual);

  auto drop = [](double p) { return [p](In x) { dropout(x[0], {x[1], 0, p}); }; };
  bad<ValueError>("[dropout] the dropout's p lies in [0, 1), given 1", {f({2}), i({3})}, drop(1 - 1e-9));
  bad<ValueError>("[dropout] the dropout's p lies in [0, 1), given -0.1", {f({2}), i({3})}, drop(-0.1));
  bad<ValueError>("[dropout] the dropout's p lies in [0, 1), given nan", {f({2}), i({3})}, drop(NAN));
  bad<ValueError>("[dropout] the dropout's state is i64[3] {seed, step, first sample}, given (no tensor)", {f({2}), {}},
                  drop(0.5));
  bad<ValueError>("[dropout] the dropout's state is i64[3] {seed, step, first sample}, given i64[2]@cpu",
                  {f({2}), i({2})}, drop(0.5));
  bad<DeviceError>("[dropout] the dropout's state lies on the device of f32[2]@cpu, given i64[3]@reference",
                   {f({2}), i({3}, reference)}, drop(0.5));
  bad<DtypeError>("[dropout] x is a floating-point tensor, given i64[2]@cpu", {i({2}), i({3})}, drop(0.5));
  const Random random;
  bad<ValueError>("[dropout] p lies in [0, 1), given 2 for layer.0", {}, [&](In) { random.site("layer.0", 2); });
}

void embeddings() {
  auto gather = [](In x) { gather_rows(x[0], x[1]); };
  bad<DtypeError>("[gather_rows] table is a floating-point tensor, given i64[2,3]@cpu", {i({2, 3}), i({2})}, gather);
  bad<ShapeError>("[gather_rows] table is a table of rows [V,N], given f32[2]@cpu", {f({2}), i({2})}, gather);
  bad<ShapeError>("[gather_rows] table has at least one row, given f32[0,2]@cpu", {f({0, 2}), i({2})}, gather);
  bad<DtypeError>("[embedding] index is i64, given f32[2]@cpu", {f({2, 3}), f({2})},
                  [](In x) { embedding(x[0], x[1]); });
  bad<DeviceError>("[embedding] index lies on the device of f32[2,3]@cpu, given i64[2]@reference",
                   {f({2, 3}), i({2}, reference)}, [](In x) { embedding(x[0], x[1]); });
  bad<ShapeError>("[index_select] dimension 2 is outside a tensor of rank 2", {f({2, 3}), i({2})},
                  [](In x) { index_select(x[0], 2, x[1]); });
  bad<ShapeError>("[index_select] index is a list [K], given i64[2,1]@cpu", {f({2, 3}), i({2, 1})},
                  [](In x) { index_select(x[0], 1, x[1]); });
  bad<ShapeError>("[index_select] x has at least one slice along dimension 0: f32[0,3]@cpu", {f({0, 3}), i({2})},
                  [](In x) { index_select(x[0], 0, x[1]); });

  auto joined = [](In x) { embedding_sum(x[0], x[1], x[2], x[3], x[4]); };
  const Tensor word = f({9, 4}), position = f({5, 4}), type = f({2, 4});
  bad<ShapeError>(
      "[embedding_sum] a sequence of 6 is longer than the position table: ids i64[2,6]@cpu, position f32[5,4]@cpu",
      {word, position, type, i({2, 6}), {}}, joined);
  bad<ShapeError>("[embedding_sum] position has rows as long as those of word: f32[5,3]@cpu beside f32[9,4]@cpu",
                  {word, f({5, 3}), type, i({2, 5}), {}}, joined);
  bad<DtypeError>("[embedding_sum] type is a floating-point tensor, given (no tensor)",
                  {word, position, {}, i({2, 5}), {}}, joined);
  bad<ShapeError>("[embedding_sum] ids[B,S], given i64[5]@cpu", {word, position, type, i({5}), {}}, joined);
  bad<ShapeError>("[embedding_sum] types has the shape of ids: i64[2,4]@cpu beside i64[2,5]@cpu",
                  {word, position, type, i({2, 5}), i({2, 4})}, joined);
}

void attentions() {
  auto separate = [](In x) { attention(x[0], x[1], x[2], {.lengths = x.size() > 3 ? x[3] : Tensor()}); };
  const Tensor q = f({2, 3, 4, 5});
  bad<ShapeError>("[attention] q[B,H,S,D] with D > 0, given f32[2,3,4]@cpu", {f({2, 3, 4}), q, q}, separate);
  bad<ShapeError>("[attention] k[B,H,T,D] for q[B,H,S,D]: q f32[2,3,4,5]@cpu, k f32[2,2,4,5]@cpu",
                  {q, f({2, 2, 4, 5}), q}, separate);
  bad<ShapeError>("[attention] k and v have one shape: f32[2,3,4,5]@cpu and f32[2,3,6,5]@cpu", {q, q, f({2, 3, 6, 5})},
                  separate);
  bad<DtypeError>("[attention] k has the type of f32[2,3,4,5]@cpu, given f64[2,3,4,5]@cpu", {q, d({2, 3, 4, 5}), q},
                  separate);
  bad<DtypeError>("[attention] v has the type of f32[2,3,4,5]@cpu, given (no tensor)", {q, q, {}}, separate);
  bad<DtypeError>("[attention] lengths is i32, given i64[2]@cpu", {q, q, q, i({2})}, separate);
  bad<ShapeError>("[attention] lengths[B], one a sample of f32[2,3,4,5]@cpu, given i32[3]@cpu",
                  {q, q, q, full({3}, 1, Dtype::i32)}, separate);
  auto packed = [](In x) { attention(x[0], x[1], x[1], {.offsets = x[2]}); };
  const Tensor bounds = full({3}, 1, Dtype::i32), one = f({1, 3, 4, 5});
  bad<DtypeError>("[attention] offsets is i32, given i64[2]@cpu", {one, one, i({2})}, packed);
  bad<ShapeError>("[attention] offsets[N+1] of N sequences in one sample, given i32[3]@cpu for f32[2,3,4,5]@cpu",
                  {q, q, bounds}, packed);
  bad<ShapeError>("[attention] offsets[N+1] of N sequences in one sample, given i32[0]@cpu for f32[1,3,4,5]@cpu",
                  {one, one, full({0}, 1, Dtype::i32)}, packed);
  bad<ShapeError>("[attention] offsets cut q and k alike: q f32[1,3,4,5]@cpu, k f32[1,3,6,5]@cpu",
                  {one, f({1, 3, 6, 5}), bounds}, packed);
  bad<ValueError>("[attention] lengths or offsets, not both", {one, full({1}, 2, Dtype::i32), bounds},
                  [](In x) { attention(x[0], x[0], x[0], {.lengths = x[1], .offsets = x[2]}); });
  bad<ValueError>("[attention] scale is not negative, given -1", {q},
                  [](In x) { attention(x[0], x[0], x[0], {.scale = -1}); });
  bad<ValueError>("[attention] the dropout's p lies in [0, 1), given 1", {q}, [](In x) {
    attention(x[0], x[0], x[0], {.dropout = {{}, 0, 1}});
  });
  bad<ShapeError>("[self_attention] qkv[B,S,3*heads*D] for 2 heads, given f32[2,3,9]@cpu", {f({2, 3, 9})},
                  [](In x) { self_attention(x[0], 2); });
  bad<ValueError>("[self_attention] at least one head, given 0", {f({2, 3, 9})}, [](In x) { self_attention(x[0], 0); });
}

}  // namespace

TEST_CASE("bad calls of every op", "[ops]") {
  one_tensor();
  two_tensors();
  products();
  reductions();
  shapes();
  losses();
  norms();
  embeddings();
  attentions();
  for (const OpCase& row : all_op_cases()) {
    if (row.name.starts_with("operator") || row.name == "full" || row.name == "zeros") continue;  // of other functions
    INFO(row.name << " has no bad call");
    CHECK(tried.contains(row.name));
  }
}
