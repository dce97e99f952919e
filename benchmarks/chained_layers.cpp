// What it would gain to chain a small net's layers per block of samples: each thread goes through its half of the batch
// by itself, forward and back to the first layer, and waits for nobody between layers; gradients of weights and the
// update follow as they do now. By the kernel rows of an MLP's step, in turns with the same rows one after another.
#include <cmath>

#include "cinta/backends/cpu/parallel.h"
#include "cinta/backends/kernels/matmul.h"
#include "cinta/backends/kernels/optimizer.h"
#include "cinta/ops/shape.h"
#include "cinta/optim/optimizer.h"
#include "markdown.h"

namespace benchmark {
namespace {

using namespace cinta;

/// A net whose weights lie in one buffer, as an optimizer has them.
class Net {
 public:
  Net(std::vector<int64_t> layers, int64_t batch) : batch_(batch) {
    for (size_t i = 0; i + 1 < layers.size(); ++i) {
      outputs_.push_back(random({batch, layers[i + 1]}, 1));
      gradients_.push_back(random({batch, layers[i + 1]}, 1e-3));
      at_.push_back(size_);
      size_ += layers[i] * layers[i + 1];
    }
    input_ = random({batch, layers[0]}, 1);
    weights_ = random({size_}, 0.05), weight_gradients_ = zeros({size_});
    mean_ = zeros({size_}), squares_ = zeros({size_});
    end_ = from_values(std::vector<int64_t>{size_}, {1});
    for (size_t i = 0; i + 1 < layers.size(); ++i) shapes_.push_back({layers[i + 1], layers[i]});
  }

  void step(bool chained) {
    if (chained)
      parallel_for(threads(), 1, [&](int64_t thread, int64_t) {
        layers(thread * batch_ / threads(), (thread + 1) * batch_ / threads());
      });
    else
      layers(0, batch_);
    for (size_t i = outputs_.size(); i-- > 0;)
      kernels::matmul(cpu, of_layer(weight_gradients_, i), transpose(gradients_[i], 0, 1), below(i), 1, 0);
    kernels::adamw(cpu, weights_, View(), mean_, squares_, weight_gradients_, {end_, one_, decay_}, scalars_, {});
  }

 private:
  static Tensor random(const Shape& shape, double scale) {
    std::vector<float> values;
    for (int64_t i = 0; i < shape.numel(); ++i) values.push_back(static_cast<float>(scale * std::sin(1.7 * i)));
    return from_values(values, shape);
  }
  Tensor of_layer(const Tensor& flat, size_t layer) const {
    const int64_t begin = at_[layer];
    return reshape(slice(flat, 0, begin, begin + shapes_[layer].numel()), shapes_[layer]);
  }
  const Tensor& below(size_t layer) const { return layer > 0 ? outputs_[layer - 1] : input_; }

  /// Forward and back, of samples [begin, end).
  void layers(int64_t begin, int64_t end) {
    const auto rows = [&](const Tensor& all) { return slice(all, 0, begin, end); };
    const size_t last = outputs_.size() - 1;
    for (size_t i = 0; i <= last; ++i) {
      const Tensor out = rows(outputs_[i]);
      kernels::linear(cpu, out, rows(below(i)), of_layer(weights_, i), View());
      if (i < last) kernels::bias_activation(cpu, out, View(), out, View(), kernels::Activation::relu);
    }
    for (size_t i = last; i > 0; --i) {
      const Tensor gradient = rows(gradients_[i - 1]);
      kernels::matmul(cpu, gradient, rows(gradients_[i]), of_layer(weights_, i), 1, 0);
      kernels::bias_activation_backward(cpu, gradient, View(), gradient, rows(outputs_[i - 1]), 0);
    }
  }

  int64_t batch_, size_ = 0;
  std::vector<int64_t> at_;
  std::vector<Shape> shapes_;
  std::vector<Tensor> outputs_, gradients_;
  Tensor input_, weights_, weight_gradients_, mean_, squares_, end_;
  const Tensor one_ = from_values(std::vector<float>{1}, {1}), decay_ = from_values(std::vector<float>{0.01f}, {1}),
               scalars_ = from_values(std::vector<float>{1e-6f, 1, 0.5f, 0.5f}, {4});
};

void main_program(Options options) {
  const std::string markdown = options.get("markdown", std::string());
  const int64_t rounds = options.get("rounds", int64_t{40});
  options.finish();
  std::string text = measured() + "\n\n" + heading({"net", "layer by layer, us", "chained, us", "chained over it"});
  for (const auto& [layers, batch] : std::vector<std::pair<std::vector<int64_t>, int64_t>>{
           {{784, 512, 512, 10}, 128}, {{784, 256, 128, 10}, 64}, {{784, 256, 128, 10}, 32}}) {
    Net net(layers, batch);
    std::vector<double> times[2], ratios;
    for (int64_t round = 0; round < rounds; ++round) {
      for (const bool chained : {false, true})
        times[chained].push_back(1e6 * time_calls([&] { net.step(chained); }, 0.05).median);
      ratios.push_back(times[true].back() / times[false].back());
    }
    std::string name = "batch " + std::to_string(batch) + ",";
    for (size_t i = 0; i < layers.size(); ++i) name += (i ? "-" : " ") + std::to_string(layers[i]);
    text += row({name, number(Statistics(times[false]).median, 0), number(Statistics(times[true]).median, 0),
                 number(Statistics(ratios).median, 3)});
  }
  publish(markdown, text);
}

}  // namespace
}  // namespace benchmark

int main(int argc, char** argv) {
  return benchmark::guarded([&] { benchmark::main_program(benchmark::Options(argc, argv)); });
}
