// A program of an outside project: one training step through the installed headers and library.
#include <cinta/cinta.h>

#include <cstdio>

int main() {
  using namespace cinta;
  models::Mlp model({8, 16, 2});
  optim::AdamW optimizer(model.parameters());
  const Tensor x = full({4, 8}, 0.5), labels = full({4}, 1, Dtype::i64);
  const auto loss = [&] { return cross_entropy(model(x), labels); };
  const Tensor before = loss();
  autograd::backward(before);
  optimizer.step();
  const double was = item(before), is = item(loss());
  std::printf("loss %g -> %g\n", was, is);
  return is < was ? 0 : 1;
}
