// The calls that `cinta bench rows` times: f32, on the shapes that a BERT's step has.
#include "cinta/backends/kernels/attention.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/embedding.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/backends/kernels/normalize.h"
#include "cinta/backends/kernels/optimizer.h"
#include "cinta/backends/kernels/quantize.h"
#include "cinta/backends/kernels/random.h"
#include "cinta/backends/kernels/reduce.h"
#include "cinta/backends/kernels/round.h"
#include "cinta/backends/kernels/softmax.h"
#include "cinta/core/context.h"
#include "cinta/core/random.h"
#include "cinta/ops/shape.h"
#include "tools/bench_rows.h"

namespace cinta::tools {
namespace {

using kernels::UnaryRow;

/// Numbers in [low, low + 1). They repeat themselves, for a quick start.
Tensor uniform(const Shape& shape, float low, const char* stream) {
  constexpr size_t different = 1 << 16;
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = i < different ? low + 0x1p-32f * static_cast<float>(random_word(0, stream_id(stream), 0, i))
                              : values[i - different];
  return from_values(values, shape);
}

Tensor indices(int64_t count, int64_t bound, const char* stream) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<int64_t>(random_word(0, stream_id(stream), 0, i)) % bound;
  return from_values(values, {count});
}

/// What many cases share: three tensors of [tokens, width], and what lies along their columns and rows.
struct Operands {
  explicit Operands(const RowSizes& sizes)
      : x(uniform({sizes.tokens, sizes.width}, 0.5f, "x")),
        dy(uniform(x.shape(), -0.5f, "dy")),
        y(zeros(x.shape())),
        z(zeros(x.shape())),
        gain(uniform({sizes.width}, 0.5f, "gain")),
        bias(uniform({sizes.width}, -0.5f, "bias")),
        of_columns{zeros({sizes.width}), zeros({sizes.width}), zeros({sizes.width})},
        of_rows{zeros({sizes.tokens}), full({sizes.tokens}, 1)} {}
  Tensor x, dy, y, z, gain, bias, of_columns[3], of_rows[2];
  Tensor state = from_values(std::vector<int64_t>{1, 0, 0}, {3});

  kernels::Dropout dropout() const {
    kernels::Dropout site;
    site.state = state;
    site.p = 0.1f;
    return site;
  }
};

void add_elementwise(std::vector<RowCase>& out, const Operands& o) {
  for (const UnaryRow* row :
       {&kernels::affine,    &kernels::divide_by, &kernels::divide_into, &kernels::exp,        &kernels::log,
        &kernels::sqrt,      &kernels::rsqrt,     &kernels::pow,         &kernels::power_of,   &kernels::abs,
        &kernels::clamp,     &kernels::erf,       &kernels::relu,        &kernels::leaky_relu, &kernels::gelu,
        &kernels::gelu_tanh, &kernels::silu,      &kernels::tanh,        &kernels::sigmoid,    &kernels::softplus,
        &kernels::elu}) {
    const kernels::Scalars scalars{0.5, 0.9};
    out.push_back({"", [=] { row->forward(cpu, o.y, o.x, scalars); }});
    out.push_back({"", [=] { row->backward(cpu, o.y, o.dy, o.x, scalars); }});
  }
  for (const kernels::Binary* row :
       {&kernels::add, &kernels::subtract, &kernels::multiply, &kernels::divide, &kernels::power})
    out.push_back({"", [=] { (*row)(cpu, o.y, o.x, o.dy); }});
  const Tensor truth = zeros(o.x.shape(), Dtype::boolean), half = empty(o.x.shape(), Dtype::bf16);
  for (const kernels::Binary* row : {&kernels::equal, &kernels::not_equal, &kernels::less, &kernels::less_equal,
                                     &kernels::greater, &kernels::greater_equal})
    out.push_back({"", [=] { (*row)(cpu, truth, o.x, o.dy); }});
  out.push_back({"", [=] { kernels::where(cpu, o.y, truth, o.x, o.dy); }});
  const Tensor numbers = zeros({o.x.numel()}, Dtype::i64);
  out.push_back({"", [=] { kernels::arange(cpu, numbers, 0, 1); }});
  out.push_back({"", [=] { kernels::fill(cpu, o.y, 0); }});
  out.push_back({"", [=] { kernels::copy(cpu, o.y, o.x); }});
  out.push_back({"to bf16", [=] { kernels::copy(cpu, half, o.x); }});
  const kernels::RoundTo nearest, stochastic{Overflow::special, o.state, 0, 0};
  out.push_back({"to bf16", [=] { kernels::round_to(cpu, half, o.x, nearest); }});
  out.push_back({"to bf16, stochastic", [=] { kernels::round_to(cpu, half, o.x, stochastic); }});
  out.push_back({"", [=] { kernels::accumulate(cpu, o.y, o.x); }});
  out.push_back({"", [=] { kernels::dropout(cpu, o.y, {}, o.x, o.dropout()); }});
}

void add_reductions(std::vector<RowCase>& out, const Operands& o) {
  const Shape one_row{1, o.x.size(1)}, one_column{o.x.size(0), 1};
  const Tensor row = zeros(one_row), column = zeros(one_column), where = zeros(one_column, Dtype::i64),
               square = zeros({1}, Dtype::f64), scalars = full({4}, 1), norm = zeros({1}),
               updates = zeros({1}, Dtype::i64), loss_scale = full({1}, 1), counts = zeros({4}, Dtype::i64),
               found = zeros({1}, Dtype::i64);
  out.push_back({"over rows", [=] { kernels::sum(cpu, row, o.x, 0); }});
  out.push_back({"over columns", [=] { kernels::sum(cpu, column, o.x, 0); }});
  out.push_back({"", [=] { kernels::max(cpu, column, o.x); }});
  out.push_back({"", [=] { kernels::argmax(cpu, where, o.x, 1); }});
  out.push_back({"", [=] { kernels::sum_of_squares(cpu, square, o.x); }});
  out.push_back({"", [=] { kernels::clip_factor(cpu, scalars, norm, square, {}, 1); }});
  out.push_back({"", [=] { kernels::count_update(cpu, scalars, updates, 0.9, 0.999); }});
  out.push_back({"", [=] { kernels::update_loss_scale(cpu, loss_scale, counts, found, square, {}); }});
  out.push_back({"", [=] { kernels::softmax(cpu, o.y, o.x); }});
  out.push_back({"", [=] { kernels::softmax_backward(cpu, o.y, o.dy, o.x); }});
  out.push_back({"", [=] { kernels::log_softmax(cpu, o.y, o.x); }});
  out.push_back({"", [=] { kernels::log_softmax_backward(cpu, o.y, o.dy, o.x); }});
}

void add_norms(std::vector<RowCase>& out, const Operands& o) {
  const auto &mean = o.of_rows[0], &rstd = o.of_rows[1];
  const auto &dx_bias = o.of_columns[0], &dgain = o.of_columns[1], &dbias = o.of_columns[2];
  constexpr float eps = 1e-12f;
  out.push_back({"", [=] { kernels::layer_norm(cpu, o.y, {}, {}, mean, rstd, o.x, o.gain, o.bias, eps); }});
  out.push_back({"", [=] {
                   kernels::layer_norm_backward(cpu, o.y, {}, dgain, dbias, o.dy, {}, o.x, mean, rstd, o.gain, 0, 0, 0);
                 }});
  out.push_back({"", [=] { kernels::rms_norm(cpu, o.y, {}, {}, rstd, o.x, o.gain, eps); }});
  out.push_back({"", [=] { kernels::rms_norm_backward(cpu, o.y, {}, dgain, o.dy, {}, o.x, rstd, o.gain, 0, 0); }});
  for (const bool drops : {false, true}) {
    const char* variant = drops ? "with dropout" : "";
    const auto site = [=] { return drops ? o.dropout() : kernels::Dropout(); };
    out.push_back({variant, [=] {
                     kernels::residual_norm(cpu, o.y, {}, o.z, mean, rstd, o.x, o.bias, o.dy, o.gain, o.bias, eps,
                                            site());
                   }});
    const View dx = drops ? o.y.view() : View{};  // without, x and the residual have one gradient
    out.push_back({variant, [=] {
                     kernels::residual_norm_backward(cpu, dx, o.z, dx_bias, dgain, dbias, o.dy, o.x, rstd, o.gain,
                                                     site(), 0, 0, 0);
                   }});
  }
}

/// The three products of a layer from `in` to `out` features: of its output, and of its gradients.
void add_layer(std::vector<RowCase>& cases, const char* name, int64_t rows, int64_t in, int64_t out) {
  const Tensor x = uniform({rows, in}, -0.5f, "x"), w = uniform({out, in}, -0.5f, "w"),
               bias = uniform({out}, -0.5f, "bias"), dy = uniform({rows, out}, -0.5f, "dy");
  const Tensor y = zeros(dy.shape()), dx = zeros(x.shape()), dw = zeros(w.shape()), dbias = zeros(bias.shape()),
               turned = transpose(dy, 0, 1);
  cases.push_back({name, [=] { kernels::linear(cpu, y, x, w, bias); }});
  cases.push_back({join(name, ", dx"), [=] { kernels::matmul(cpu, dx, dy, w, 1, 0); }});
  cases.push_back({join(name, ", dw"), [=] { kernels::matmul(cpu, dw, turned, x, 1, 0); }});
  cases.push_back({name, [=] { kernels::linear_weight_backward(cpu, dw, dbias, dy, x, 0, 0); }});
}

void add_products(std::vector<RowCase>& out, const RowSizes& sizes) {
  add_layer(out, "q, k and v", sizes.tokens, sizes.width, 3 * sizes.width);
  add_layer(out, "projection", sizes.tokens, sizes.width, sizes.width);
  add_layer(out, "to inner", sizes.tokens, sizes.width, sizes.inner);
  add_layer(out, "from inner", sizes.tokens, sizes.inner, sizes.width);
  add_layer(out, "decoder", sizes.masked, sizes.width, sizes.vocabulary);
  const int64_t batch = sizes.tokens / sizes.sequence, head = sizes.width / sizes.heads;
  const Shape heads{batch, sizes.heads, sizes.sequence, head};
  const Tensor q = uniform(heads, -0.5f, "q"), k = uniform(heads, -0.5f, "k"), v = uniform(heads, -0.5f, "v"),
               attended = zeros(heads), dq = zeros(heads), dk = zeros(heads), dv = zeros(heads),
               lse = zeros({batch, sizes.heads, sizes.sequence});
  kernels::Attention how;
  how.scale = 0.125f;
  out.push_back({"", [=] { kernels::attention(cpu, attended, lse, q, k, v, how); }});
  out.push_back({"", [=] { kernels::attention_backward(cpu, dq, dk, dv, v, q, k, v, attended, lse, how); }});
}

/// A product in 8 bits, and what comes before it.
void add_quantized(std::vector<RowCase>& out, const Operands& o, const RowSizes& sizes) {
  const kernels::Blocks whole{sizes.tokens, sizes.width}, whole_w{sizes.inner, sizes.width};
  const Tensor amax = zeros({1, 1}), scales = full({2, 1, 1}, 1), state = full({3 + 16}, 1),
               codes = zeros(o.x.shape(), Dtype::f8e4m3), w = zeros({sizes.inner, sizes.width}, Dtype::f8e4m3),
               y = zeros({sizes.tokens, sizes.inner});
  out.push_back({"", [=] { kernels::block_amax(cpu, amax, o.x, whole); }});
  out.push_back({"", [=] { kernels::scale_from_amax(cpu, scales, amax, {}); }});
  out.push_back({"", [=] { kernels::use_delayed_scale(cpu, scales, state, amax, {}, true); }});
  out.push_back({"", [=] { kernels::update_delayed_scale(cpu, state, {}, {}, false); }});
  out.push_back({"to f8e4m3", [=] { kernels::quantize(cpu, codes, o.x, scales, whole, {}); }});
  out.push_back({"", [=] { kernels::scaled_matmul(cpu, y, codes, scales, whole, w, scales, whole_w, 0); }});
}

void add_activations(std::vector<RowCase>& out, const RowSizes& sizes) {
  const Tensor inner = uniform({sizes.tokens, sizes.inner}, -0.5f, "inner"), dinner = zeros(inner.shape()),
               slope = zeros(inner.shape()), dbias = zeros({sizes.inner});
  for (const auto& [name, activation] :
       {std::pair{"gelu", kernels::Activation::gelu}, std::pair{"gelu_tanh", kernels::Activation::gelu_tanh},
        std::pair{"relu", kernels::Activation::relu}}) {
    out.push_back({name, [=] { kernels::activation(cpu, dinner, slope, inner, activation); }});
    out.push_back({name, [=] { kernels::activation_backward(cpu, dinner, dbias, inner, slope, 0); }});
  }
}

void add_tables(std::vector<RowCase>& out, const Operands& o, const RowSizes& sizes) {
  const Tensor word = uniform({sizes.vocabulary, sizes.width}, -0.5f, "word"), dword = zeros(word.shape()),
               position = uniform({sizes.sequence, sizes.width}, -0.5f, "position"),
               type = uniform({2, sizes.width}, -0.5f, "type"), ids = indices(sizes.tokens, sizes.vocabulary, "ids");
  const Tensor first = zeros(word.shape()), second = zeros(word.shape());
  void* status = context().status(cpu);
  out.push_back({"", [=] { kernels::gather_rows(cpu, o.y, word, ids, status); }});
  out.push_back({"", [=] { kernels::scatter_add_rows(cpu, dword, o.dy, ids, -1, 1); }});
  out.push_back({"", [=] {
                   kernels::embedding_sum(cpu, o.y, word, position, type, ids, View{}, View{}, sizes.sequence, status);
                 }});
  const Tensor ends = from_values(std::vector<int64_t>{word.numel()}, {1}),
               factors = from_values(std::vector<float>{1}, {1}), decays = from_values(std::vector<float>{0.01f}, {1}),
               scalars = from_values(std::vector<float>{1e-4f, 1, 0.1f, 0.001f}, {4});
  const auto flat = [](const Tensor& tensor) { return reshape(tensor, {tensor.numel()}); };
  const Tensor w = flat(word), m = flat(first), v = flat(second), g = flat(dword);
  out.push_back({"", [=] { kernels::adamw(cpu, w, {}, m, v, g, {ends, factors, decays}, scalars, {}); }});
  out.push_back({"", [=] { kernels::sgd(cpu, w, {}, m, g, {ends, factors, decays}, scalars, {.momentum = 0.9}); }});

  const Tensor logits = uniform({sizes.masked, sizes.vocabulary}, -0.5f, "logits"), dlogits = zeros(logits.shape()),
               labels = indices(sizes.masked, sizes.vocabulary, "labels"), loss = zeros({sizes.masked}),
               lse = full({sizes.masked, 2}, 5), dloss = full({sizes.masked}, 1);
  out.push_back({"", [=] { kernels::cross_entropy(cpu, loss, lse, logits, labels, {}, status); }});
  out.push_back({"", [=] { kernels::cross_entropy_backward(cpu, dlogits, dloss, logits, lse, labels, {}); }});
}

}  // namespace

std::vector<RowCase> row_cases(const RowSizes& sizes) {
  const Operands operands(sizes);
  std::vector<RowCase> out;
  add_products(out, sizes);
  add_quantized(out, operands, sizes);
  add_activations(out, sizes);
  add_norms(out, operands);
  add_tables(out, operands, sizes);
  add_reductions(out, operands);
  add_elementwise(out, operands);
  return out;
}

}  // namespace cinta::tools
