// Trains a perceptron on handwritten digits and says how many new ones it reads. Give it a CSV file of 64 pixels and
// the class a row, plain or gzip; without one it learns digits that it draws itself.
#include <cinta/cinta.h>

#include <cstdio>

using namespace cinta;

int main(int argc, char** argv) {
  auto [train, test] = data::split(argc > 1 ? data::read_digits(argv[1]) : data::generate_digits(1797, 0), 0.2, 0);
  models::Mlp mlp({64, 128, 64, 10});
  optim::AdamW optimizer(mlp.parameters(), {.rate = 1e-3});
  data::ExampleBatches batches(train, 64, /*seed=*/0);
  for (int step = 0; step < 400; ++step) {
    data::Batch batch = batches.batch(step);
    Tensor loss = cross_entropy(mlp(from_values(batch.inputs, {64, 64})), from_values(batch.labels, {64}));
    optimizer.zero_gradients();
    autograd::backward(loss);
    optimizer.step();
  }
  Tensor guesses = mlp(from_values(test.inputs_f32(), {test.count, 64})),
         labels = from_values(test.labels, {test.count});
  std::printf("%.1f %% of new digits read right\n", 100 * item(count_correct(guesses, labels)) / test.count);
}
