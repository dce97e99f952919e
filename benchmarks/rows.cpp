// How fast the memory-bound rows move their bytes, beside a plain memcpy that moves as many, in turns. A row's bytes
// are what it must read and write once (a tensor updated in place counts twice), a memcpy's those it reads and writes.
// Tensors are larger than the caches, so that a row at memcpy's rate leaves nothing to gain but fusion.
#include <cstring>
#include <functional>

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/normalize.h"
#include "cinta/backends/kernels/optimizer.h"
#include "cinta/backends/kernels/reduce.h"
#include "cinta/backends/kernels/softmax.h"
#include "cinta/core/random.h"
#include "cinta/core/tensor.h"
#include "markdown.h"

namespace benchmark {
namespace {

using namespace cinta;

struct Row {
  std::string name;
  double bytes;
  std::function<void()> call;
};

/// memcpy by as many threads as the rows use, a part each.
class Copies {
 public:
  explicit Copies(int64_t largest) : from_(static_cast<size_t>(largest), 'a'), to_(static_cast<size_t>(largest), 'b') {}
  /// GB/s, read and written, of copies that move `bytes` each.
  double rate(double bytes) {
    constexpr int times = 4;  // for each start of the threads
    const size_t parts = static_cast<size_t>(threads()), part = static_cast<size_t>(bytes) / 2 / parts;
    const double start = seconds();
    {
      std::vector<std::jthread> team;
      for (size_t i = 0; i < parts; ++i)
        team.emplace_back([this, i, part] {
          for (int turn = 0; turn < times; ++turn) std::memcpy(to_.data() + i * part, from_.data() + i * part, part);
        });
    }
    return 1e-9 * bytes * times / (seconds() - start);
  }

 private:
  std::vector<char> from_, to_;
};

Tensor normal(const Shape& shape, const char* stream) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random_normal(1, stream_id(stream), 0, i));
  return from_values(values, shape);
}

/// The rows on [rows, columns] in f32; the calls hold their tensors.
std::vector<Row> rows_on(int64_t rows, int64_t columns) {
  const Shape shape{rows, columns};
  const Tensor x = normal(shape, "x"), dy = normal(shape, "dy"), y = empty(shape), z = empty(shape),
               half = empty(shape, Dtype::bf16), gain = normal({columns}, "gain"), bias = normal({columns}, "bias"),
               mean = empty({rows}), rstd = empty({rows}), dgain = empty({columns}), dbias = empty({columns}),
               dx_bias = empty({columns}), square = empty({1}, Dtype::f64), column_sum = empty({1, columns});
  const Tensor weights = normal(shape, "w"), first = empty(shape), second = empty(shape);
  for (const Tensor& moment : {first, second}) kernels::fill(cpu, moment, 0.01);
  const Tensor ends = from_values(std::vector<int64_t>{shape.numel()}, {1}),
               factors = from_values(std::vector<float>{1}, {1}), decays = from_values(std::vector<float>{0.01f}, {1}),
               scalars = from_values(std::vector<float>{1e-4f, 1, 0.1f, 0.001f}, {4}),
               state = from_values(std::vector<int64_t>{1, 0, 0}, {3});
  const double one = 4.0 * static_cast<double>(shape.numel());  // bytes of one tensor
  const auto dropout = [state] {  // a view holds no memory: the tensor must live as long as the call
    kernels::Dropout site;
    site.state = state;
    site.p = 0.1f;
    return site;
  };
  return {
      {"copy", 2 * one, [=] { kernels::copy(cpu, y, x); }},
      {"copy to bf16", 1.5 * one, [=] { kernels::copy(cpu, half, x); }},
      {"add", 3 * one, [=] { kernels::add(cpu, y, x, dy); }},
      {"accumulate", 3 * one, [=] { kernels::accumulate(cpu, y, x); }},
      {"relu", 2 * one, [=] { kernels::relu.forward(cpu, y, x, {}); }},
      {"gelu", 2 * one, [=] { kernels::gelu.forward(cpu, y, x, {}); }},
      {"gelu, backward", 3 * one, [=] { kernels::gelu.backward(cpu, y, dy, x, {}); }},
      {"dropout", 2 * one, [=] { kernels::dropout(cpu, y, x, dropout()); }},
      {"sum over rows", one, [=] { kernels::sum(cpu, column_sum, x, 0.0f); }},
      {"sum of squares", one, [=] { kernels::sum_of_squares(cpu, square, x); }},
      {"softmax", 2 * one, [=] { kernels::softmax(cpu, y, x); }},
      {"softmax, backward", 3 * one, [=] { kernels::softmax_backward(cpu, y, dy, x); }},
      {"layer_norm", 2 * one, [=] { kernels::layer_norm(cpu, y, mean, rstd, x, gain, bias, 1e-12f); }},
      {"layer_norm, backward", 3 * one,
       [=] { kernels::layer_norm_backward(cpu, y, dgain, dbias, dy, x, mean, rstd, gain, 0.0f, 0.0f); }},
      {"residual_norm", 4 * one,
       [=] { kernels::residual_norm(cpu, y, z, mean, rstd, x, bias, dy, gain, bias, 1e-12f, kernels::Dropout()); }},
      {"residual_norm with dropout", 4 * one,
       [=] { kernels::residual_norm(cpu, y, z, mean, rstd, x, bias, dy, gain, bias, 1e-12f, dropout()); }},
      {"residual_norm with dropout, backward", 4 * one,
       [=] {
         kernels::residual_norm_backward(cpu, y, z, dx_bias, dgain, dbias, dy, x, mean, rstd, gain, dropout(), 0.0f,
                                         0.0f, 0.0f);
       }},
      {"adamw", 7 * one,
       [=] {
         kernels::adamw(cpu, weights, first, second, dy, {ends, factors, decays}, scalars, {});
       }},
  };
}

void main_program(Options options) {
  const int64_t rows = options.get("rows", int64_t{8192}), columns = options.get("columns", int64_t{768}),
                rounds = options.get("rounds", int64_t{15});
  const std::string json = options.get("json", std::string()), markdown = options.get("markdown", std::string());
  set_threads(static_cast<int>(options.get("threads", int64_t{threads()})));
  options.finish();
  Copies copies(4 * rows * columns * 4);
  Json out = {{"date", date()}, {"machine", machine()}, {"rows", rows}, {"columns", columns}, {"rounds", rounds}};
  std::string text = measured() + " f32[" + std::to_string(rows) + ", " + std::to_string(columns) + "], " +
                     std::to_string(rounds) + " rounds in turns.\n\n" +
                     heading({"row", "MB moved", "ms (median)", "GB/s", "memcpy GB/s", "row over memcpy", "spread"});
  for (const Row& row : rows_on(rows, columns)) {
    row.call();
    std::vector<double> times, memcpy_rates, ratios;
    for (int64_t round = 0; round < rounds; ++round) {
      const double start = seconds();
      row.call();
      times.push_back(seconds() - start);
      memcpy_rates.push_back(copies.rate(row.bytes));
      ratios.push_back(1e-9 * row.bytes / times.back() / memcpy_rates.back());
    }
    const Statistics time(times), plain(memcpy_rates), ratio(ratios);
    const double rate = 1e-9 * row.bytes / time.median;
    text += benchmark::row({row.name, number(1e-6 * row.bytes, 0), number(1e3 * time.median, 2), number(rate, 1),
                            number(plain.median, 1), number(ratio.median, 2), number(100 * ratio.spread, 0) + " %"});
    out["results"].push_back({{"row", row.name},
                              {"bytes", row.bytes},
                              {"seconds", time.json()},
                              {"gigabytes_a_second", rate},
                              {"memcpy_gigabytes_a_second", plain.median},
                              {"over_memcpy", ratio.json()}});
  }
  publish(markdown, text);
  write(json, out);
}

}  // namespace
}  // namespace benchmark

int main(int argc, char** argv) {
  return benchmark::guarded([&] { benchmark::main_program(benchmark::Options(argc, argv)); });
}
