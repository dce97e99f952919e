// Setting the random state on the device, and checking sites.
#include "cinta/ops/random.h"

#include "cinta/autograd/mode.h"
#include "cinta/core/context.h"
#include "cinta/core/random.h"
#include "cinta/ops/shape.h"

namespace cinta {
namespace {

/// In [0, 1), also as the f32 that kernels are given.
bool is_probability(double p) { return p >= 0 && static_cast<float>(p) < 1; }

}  // namespace

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
  require(is_probability(p), "dropout", where, "p lies in [0, 1), given ", p, " for ", name);
  return {state_, stream_id(name), p};
}

DropoutSite DropoutSite::of_rows(const Tensor& numbers, int64_t rows_a_sample) const {
  return {state, stream, p, contiguous(numbers), rows_a_sample};
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
  require(is_probability(site.p), op, where, "the dropout's p lies in [0, 1), given ", site.p);
  if (site.p == 0) return;
  check_random_state(op, "the dropout's state", site.state, x, where);
  if (!site.rows) return;
  const Shape one_each{leading_rows(x.shape())};
  require(site.rows.dtype() == Dtype::i64 && site.rows.shape() == one_each && site.rows.contiguous(), op, where,
          "the dropout's rows are i64", one_each, ", one for each row of ", x, ", given ", site.rows);
  require<DeviceError>(site.rows.device() == x.device(), op, where, "the dropout's rows lie on the device of ", x,
                       ", given ", site.rows);
}

Draw::Draw(const DropoutSite& site) : site_(site) {
  if (site.p != 0) version_ = site.state.storage()->version();
  if (site.rows) rows_version_ = site.rows.storage()->version();
}

const DropoutSite& Draw::again(const char* op) const {
  const auto same = [op](const char* what, const Tensor& x, uint32_t version) {
    autograd::note_read(op, x);
    if (x.storage()->version() != version)
      throw ValueError(join("[", op, "] ", what, " changed by ", x.storage()->last_writer(),
                            " between forward and backward: the dropout mask cannot be made again"));
  };
  if (site_.p != 0) same("the random state was", site_.state, version_);
  if (site_.p != 0 && site_.rows) same("the rows that are masked were", site_.rows, rows_version_);
  return site_;
}

}  // namespace cinta
