// Setting the random state on the device, and checking sites.
#include "cinta/ops/random.h"

#include "cinta/core/context.h"
#include "cinta/core/random.h"

namespace cinta {

Random::Random(uint64_t seed, Device device) {
  CategoryScope scope(Category::workspace);
  state_ = from_values<int64_t>({static_cast<int64_t>(seed), 0, 0}, {3}, device);
}

void Random::set(int64_t index, int64_t value) {
  const Device device = state_.device();
  if (device.backend == meta.backend) return;
  context().check_copy("Random", Where());
  runtime_of(device).copy(context().stream(device), state_.view().as<int64_t>() + index, &value, sizeof value);
  state_.storage()->mark_written("Random");
}

RandomSite Random::site(std::string_view name) const { return {state_, stream_id(name)}; }

DropoutSite Random::site(std::string_view name, double p, Where where) const {
  require(p >= 0 && p < 1, "dropout", where, "p lies in [0, 1), given ", p, " for ", name);
  return {state_, stream_id(name), p};
}

int64_t rows_per_sample(const Tensor& x) {
  int64_t rows = 1;
  for (int dim = 1; dim + 1 < x.rank(); ++dim) rows *= x.shape()[dim];
  return rows;
}

void check_random_state(const char* op, const char* name, const Tensor& state, const Tensor& x, Where where) {
  require(state && state.dtype() == Dtype::i64 && state.shape() == Shape{3} && state.contiguous(), op, where, name,
          " is i64[3] {seed, step, first sample}, given ", state);
  require<DeviceError>(state.device() == x.device(), op, where, name, " lies on the device of ", x, ", given ", state);
}

void check_dropout(const char* op, const DropoutSite& site, const Tensor& x, Where where) {
  require(site.p >= 0 && site.p < 1, op, where, "the dropout's p lies in [0, 1), given ", site.p);
  if (site.p != 0) check_random_state(op, "the dropout's state", site.state, x, where);
}

const DropoutSite& Draw::again(const char* op) const {
  if (site_.p != 0 && site_.state.storage()->version() != version_)
    throw ValueError(join("[", op, "] the random state was changed by ", site_.state.storage()->last_writer(),
                          " between forward and backward: the dropout mask cannot be made again"));
  return site_;
}

}  // namespace cinta
