// What the contract of attention leaves out: memory, masks that survive a split, what padding may hold, packed
// operands.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "cinta/backends/kernels/attention.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/core/allocator.h"
#include "cinta/core/context.h"
#include "cinta/core/random.h"
#include "cinta/core/tensor.h"
#include "cinta/ops/shape.h"
#include "thread_scope.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

Tensor random(const Shape& shape, uint32_t stream) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 3 * to_uniform(random_word(7, stream, 0, i)) - 1.5f;
  return from_values(values, shape);
}

struct Inputs {
  Tensor q, k, v, gradient;
  explicit Inputs(const Shape& shape)
      : q(random(shape, 1)), k(random(shape, 2)), v(random(shape, 3)), gradient(random(shape, 4)) {}
};

struct Results {
  Tensor o, lse, dq, dk, dv;
  explicit Results(const Shape& shape)
      : o(empty(shape)),
        lse(empty({shape[0], shape[1], shape[2]})),
        dq(empty(shape)),
        dk(empty(shape)),
        dv(empty(shape)) {}
  std::vector<std::vector<float>> numbers() const {
    std::vector<std::vector<float>> out;
    for (const Tensor& tensor : {o, lse, dq, dk, dv}) out.push_back(to_vector<float>(tensor));
    return out;
  }
};

/// Forward and backward into `out`.
void run(const Results& out, const Inputs& in, const kernels::Attention& options, Device device = cpu) {
  kernels::attention(device, out.o, out.lse, in.q, in.k, in.v, options);
  kernels::attention_backward(device, out.dq, out.dk, out.dv, in.gradient, in.q, in.k, in.v, out.o, out.lse, options);
}
Results run(const Inputs& in, const kernels::Attention& options, Device device = cpu) {
  Results out(in.q.shape());
  run(out, in, options, device);
  return out;
}

kernels::Attention options(int64_t size) { return {1 / std::sqrt(static_cast<float>(size)), false, {}, {}, {}, {}}; }

/// Elements [first, first + count) of the first dimension.
Tensor slice(const Tensor& x, int64_t first, int64_t count) {
  Shape shape = x.shape();
  shape[0] = count;
  return x.with_layout(shape, x.strides(), x.offset() + first * x.strides()[0]);
}

}  // namespace

TEST_CASE("attention over several blocks agrees with the reference", "[attention]") {
  const int64_t size = 64;
  for (bool causal : {false, true}) {
    const Inputs in({1, 2, 210, size});
    auto how = options(size);
    how.causal = causal;
    const auto got = run(in, how).numbers(), want = run(in, how, reference).numbers();
    for (size_t n = 0; n < want.size(); ++n) {
      double worst = 0, largest = 0;
      for (size_t i = 0; i < want[n].size(); ++i) {
        worst = std::max<double>(worst, std::abs(got[n][i] - want[n][i]));
        largest = std::max<double>(largest, std::abs(want[n][i]));
      }
      INFO("result " << n << " causal " << causal);
      CHECK(worst <= 0x1p-24 * (210 + 16) * largest);  // the longest sum has 210 terms
    }
  }
}

TEST_CASE("attention's workspace grows with the sequence, not with its square", "[attention]") {
  const auto workspace = [](int64_t sequence) {
    context().pool(cpu)->reset_peak();
    const ThreadScope one(1);
    run(Inputs({1, 1, sequence, 16}), options(16));
    return static_cast<double>(memory_statistics(cpu).peak[static_cast<size_t>(Category::workspace)]);
  };
  const double small = workspace(1024), large = workspace(4096);
  CHECK(large <= 4.5 * std::max(small, 1.0));
  CHECK(large < 4096.0 * 4096 * sizeof(float) / 4);
}

TEST_CASE("attention has the same bits with any number of threads", "[attention]") {
  const Inputs in({3, 2, 70, 24});
  const Tensor state = from_values<int64_t>({5, 9, 0}, {3}), lengths = from_values<int32_t>({70, 1, 33}, {3});
  auto how = options(24);
  how.lengths = lengths;
  how.dropout = {state, 17, 0.25f};
  const auto compute = [&](int count) {
    const ThreadScope scope(count);
    return run(in, how).numbers();
  };
  const auto alone = compute(1);
  for (int count : {2, 5}) CHECK(compute(count) == alone);
}

TEST_CASE("attention of some queries has the same bits with any number of threads", "[attention]") {
  const Inputs all({3, 2, 70, 24});
  const Tensor state = from_values<int64_t>({5, 9, 0}, {3}), rows = from_values<int64_t>({209, 3, 3, 71, 0}, {5});
  Inputs in = all;
  in.q = random({1, 2, 5, 24}, 5), in.gradient = random({1, 2, 5, 24}, 6);
  auto how = options(24);
  how.dropout = {state, 17, 0.25f};
  how.rows = rows;
  const auto compute = [&](int count) {
    const ThreadScope scope(count);
    Results out({1, 2, 5, 24});
    out.dk = empty(in.k.shape()), out.dv = empty(in.k.shape());
    run(out, in, how);
    return out.numbers();
  };
  const auto alone = compute(1);
  for (int count : {2, 5}) CHECK(compute(count) == alone);
}

TEST_CASE("queries at no position are not written", "[attention]") {
  const Inputs all({2, 1, 4, 8});
  const Tensor rows = from_values<int64_t>({8, 1, -1}, {3}), q = random({1, 1, 3, 8}, 5);
  auto how = options(8);
  how.rows = rows;
  for (Device device : {cpu, reference}) {
    const auto sevens = [](const Shape& shape) {
      return from_values(std::vector<float>(static_cast<size_t>(shape.numel()), 7), shape);
    };
    const Tensor o = sevens({1, 1, 3, 8}), lse = sevens({1, 1, 3}), dq = sevens({1, 1, 3, 8});
    const Tensor dk = empty(all.k.shape()), dv = empty(all.k.shape());
    kernels::attention(device, o, lse, q, all.k, all.v, how);
    kernels::attention_backward(device, dq, dk, dv, q, q, all.k, all.v, o, lse, how);
    for (const Tensor& x : {o, dq}) {
      const auto numbers = to_vector<float>(x);
      for (size_t i = 0; i < numbers.size(); ++i) CHECK((numbers[i] == 7) == (i / 8 != 1));
    }
    for (const Tensor& x : {dk, dv})
      for (size_t i = 32; i < 64; ++i) CHECK(to_vector<float>(x)[i] == 0);
  }
}

TEST_CASE("a sample keeps its mask when the batch is split", "[attention]") {
  const int64_t heads = 2, sequence = 20;
  const Inputs in({3, heads, sequence, 8});
  auto how = options(8);
  const auto state = [](int64_t first_row) { return from_values<int64_t>({5, 9, first_row}, {3}); };
  const Tensor whole_state = state(0), part_state = state(heads * sequence);
  how.dropout = {whole_state, 17, 0.5f};
  const Results whole = run(in, how);
  Inputs part = in;
  for (Tensor* x : {&part.q, &part.k, &part.v, &part.gradient}) *x = slice(*x, 1, 2);
  how.dropout.state = part_state;
  const Results split = run(part, how);
  CHECK(to_vector<float>(split.o) == to_vector<float>(slice(whole.o, 1, 2)));
  CHECK(to_vector<float>(split.dk) == to_vector<float>(slice(whole.dk, 1, 2)));
}

TEST_CASE("what lies in the padding is not seen", "[attention]") {
  const Shape shape{2, 2, 40, 16};
  const Tensor lengths = from_values<int32_t>({7, 33}, {2});
  auto how = options(16);
  how.lengths = lengths;
  const auto with_padding = [&](float value) {
    Inputs in(shape);
    for (const Tensor& x : {in.q, in.k, in.v, in.gradient})
      for (int64_t sample = 0; sample < 2; ++sample) {
        const int64_t length = sample == 0 ? 7 : 33;
        const Tensor padding =
            x.with_layout({2, 40 - length, 16}, {40 * 16, 16, 1}, sample * 2 * 40 * 16 + length * 16);
        kernels::fill(cpu, padding, value);
      }
    return run(in, how).numbers();
  };
  const auto clean = with_padding(0);
  CHECK(with_padding(std::numeric_limits<float>::quiet_NaN()) == clean);
  CHECK(clean[0][(0 * 40 + 7) * 16] == 0);
}

TEST_CASE("what all keys share leaves no trace in the gradients", "[attention]") {
  // Scores that are all 400 larger: the probabilities are those of before, but lse is rounded to 400 times as much.
  const Shape shape{2, 3, 130, 16};
  const auto with_first = [&](const Tensor& x, float value) {
    std::vector<float> values = to_vector<float>(x);
    for (size_t i = 0; i < values.size(); i += 16) values[i] = value;
    return from_values(values, shape);
  };
  const Tensor state = from_values<int64_t>({5, 9, 0}, {3});
  const float shift = 400;
  for (const float p : {0.0f, 0.3f})
    for (const Device device : {cpu, reference}) {
      kernels::Attention how = options(16);
      if (p > 0) how.dropout = {state, 3, p};
      Inputs in(shape);
      in.q = with_first(in.q, 4), in.k = with_first(in.k, 0);
      const auto expected = run(in, how, device).numbers();
      in.k = with_first(in.k, shift / (4 * how.scale));
      const auto found = run(in, how, device).numbers();
      for (const size_t gradient : {2, 3, 4}) {
        float largest = 0, worst = 0;
        for (size_t i = 0; i < expected[gradient].size(); ++i) {
          largest = std::max(largest, std::fabs(expected[gradient][i]));
          worst = std::max(worst, std::fabs(found[gradient][i] - expected[gradient][i]));
        }
        INFO(join(device) << " p " << p << " gradient " << gradient << ": " << worst << " of " << largest);
        CHECK(worst < 4 * shift * std::numeric_limits<float>::epsilon() * largest);
      }
    }
}

TEST_CASE("the scores of a query that sees one key have no gradient", "[attention]") {
  const Shape shape{4, 50, 1, 16};
  Inputs in(shape);
  Results out(shape);
  const auto how = options(16);
  kernels::attention(cpu, out.o, out.lse, in.q, in.k, in.v, how);
  std::vector<float> lse = to_vector<float>(out.lse);
  for (size_t i = 0; i < lse.size(); ++i) lse[i] += 1e-3f * static_cast<float>(i);  // as of a kernel less exact
  out.lse = from_values(lse, out.lse.shape());
  kernels::attention_backward(cpu, out.dq, out.dk, out.dv, in.gradient, in.q, in.k, in.v, out.o, out.lse, how);
  for (const Tensor& gradient : {out.dq, out.dk})
    CHECK(to_vector<float>(gradient) == std::vector<float>(static_cast<size_t>(shape.numel()), 0));
  CHECK(to_vector<float>(out.dv) == to_vector<float>(in.gradient));
}

TEST_CASE("scores as large as their rounding is coarse are still equal", "[attention]") {
  const Shape shape{1, 1, 40, 24};
  Inputs in(shape);
  in.q = in.k = from_values(std::vector<float>(40 * 24, 1e5f), shape);
  const Results out = run(in, options(24));
  const std::vector<float> v = to_vector<float>(in.v), o = to_vector<float>(out.o), dv = to_vector<float>(out.dv),
                           gradient = to_vector<float>(in.gradient);
  for (size_t d = 0; d < 24; ++d) {
    float mean = 0, mean_gradient = 0;
    for (size_t t = 0; t < 40; ++t) mean += v[t * 24 + d] / 40, mean_gradient += gradient[t * 24 + d] / 40;
    for (size_t t = 0; t < 40; ++t) {
      CHECK(o[t * 24 + d] == Approx(mean).margin(1e-5));
      CHECK(dv[t * 24 + d] == Approx(mean_gradient).margin(1e-5));
    }
  }
}

TEST_CASE("operands packed in one projection give the same bits as separate ones", "[attention]") {
  const int64_t samples = 2, heads = 3;
  for (const auto& [sequence, size, dtype] :
       {std::tuple{50, 16, Dtype::f32}, {50, 16, Dtype::bf16}, {64, 64, Dtype::bf16}}) {
    const Tensor packed = cast(random({samples, sequence, 3, heads, size}, 1), dtype);
    const auto part = [&](int64_t which) {
      const int64_t row = 3 * heads * size;
      return packed.with_layout({samples, heads, sequence, size}, {sequence * row, size, row, 1}, which * heads * size);
    };
    const Shape shape{samples, heads, sequence, size};
    Inputs views(shape), copies = views;
    views.q = part(0), views.k = part(1), views.v = part(2), views.gradient = cast(views.gradient, dtype);
    copies.gradient = views.gradient;
    for (auto [copy, view] : {std::pair{&copies.q, &views.q}, {&copies.k, &views.k}, {&copies.v, &views.v}}) {
      *copy = empty(shape, dtype);
      kernels::copy(cpu, *copy, *view);
    }
    INFO(join(dtype) << " of " << size);
    CHECK(run(views, options(size)).numbers() == run(copies, options(size)).numbers());
  }
}

TEST_CASE("attention over no keys and over no queries", "[attention]") {
  const Tensor q = random({1, 2, 3, 4}, 1), none = empty({1, 2, 0, 4}), o = empty({1, 2, 3, 4}), lse = empty({1, 2, 3});
  kernels::attention(cpu, o, lse, q, none, none, options(4));
  CHECK(to_vector<float>(o) == std::vector<float>(24, 0));
  CHECK(to_vector<float>(lse) == std::vector<float>(6, 0));
  kernels::attention(cpu, none, empty({1, 2, 0}), none, q, q, options(4));
  const Tensor dq = empty({1, 2, 3, 4});
  kernels::attention_backward(cpu, dq, none, none, q, q, none, none, o, lse, options(4));
  CHECK(to_vector<float>(dq) == std::vector<float>(24, 0));
}
