// Taking and giving back the memory of gradients.
#include "cinta/optim/flat_gradients.h"

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/core/context.h"

namespace cinta::optim {
namespace {

class Home final : public autograd::GradientHome {
 public:
  Home(std::shared_ptr<FlatGradients> gradients, size_t number) : gradients_(std::move(gradients)), number_(number) {}
  Tensor buffer() override { return gradients_->slice(number_); }
  void stay() override { gradients_->stay(); }

 private:
  std::shared_ptr<FlatGradients> gradients_;
  size_t number_;
};

}  // namespace

std::shared_ptr<autograd::GradientHome> FlatGradients::home(std::shared_ptr<FlatGradients> gradients, size_t i) {
  return std::make_shared<Home>(std::move(gradients), i);
}

const Tensor& FlatGradients::flat() {
  if (!flat_) take();
  return flat_;
}

const Tensor& FlatGradients::slice(size_t i) {
  if (!flat_) take();
  return places_[i].slice;
}

bool FlatGradients::give_back() {
  if (stays_) return false;
  flat_ = {};
  for (Place& place : places_) place.slice = {};
  return true;
}

void FlatGradients::take() {
  const CategoryScope scope(Category::gradients);
  const Tensor flat = empty({length_}, dtype_, device_);
  const auto clear = [&](int64_t begin, int64_t end) {
    if (begin < end) kernels::fill(device_, flat.with_layout({end - begin}, {1}, begin), 0.0);
  };
  int64_t end = 0;
  for (Place& place : places_) {
    clear(end, place.begin);
    end = place.begin + place.shape.numel();
    auto part =
        std::make_shared<Storage>(flat.storage(), place.begin * size_of(dtype_), place.shape.numel() * size_of(dtype_));
    place.slice = Tensor(std::move(part), place.shape, contiguous_strides(place.shape), 0, dtype_);
  }
  clear(end, length_);
  flat_ = flat;
}

}  // namespace cinta::optim
