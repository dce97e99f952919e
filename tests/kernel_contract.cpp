// The contract tests' engine: lays operands out in guarded memory, runs a row on the reference and on every other
// backend, compares. The contracts themselves stand in the other kernel_contract_*.cpp.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <limits>
#include <set>

#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/threads.h"
#include "cinta/core/context.h"
#include "cinta/core/random.h"
#include "cinta/core/tensor.h"
#include "contract/contract.h"

namespace cinta::contract {
namespace {

constexpr int64_t guard = 128;  // bytes on both sides of every operand
constexpr char untouched = 0x5a;

struct Registered {
  std::vector<const KernelRow*> rows;
  void (*check)();
  std::string file;
};
std::vector<Registered>& registered() {
  static std::vector<Registered> list;
  return list;
}
std::set<const KernelRow*>& tried() {
  static std::set<const KernelRow*> rows;
  return rows;
}

/// The backends that are held against the reference's f64 results: those with memory, so also the reference itself,
/// which must give the same from every storage type and layout.
std::vector<Device> devices() {
  std::vector<Device> out;
  for (uint8_t backend = 0; backend < max_backends; ++backend)
    if (const Device device{backend}; device != meta) try {
        runtime_of(device);
        out.push_back(device);
      } catch (const DeviceError&) {
      }
  return out;
}

View dense_view(void* data, const Shape& shape, Dtype dtype) {
  return {data, shape, contiguous_strides(shape), dtype, true};
}
View dense_view(Values& values, const Shape& shape) { return dense_view(values.data(), shape, Dtype::f64); }

Shape strides_of(const Shape& shape, Layout layout) {
  Shape strides = contiguous_strides(shape);
  const int rank = shape.rank();
  if (rank == 0) return strides;
  switch (layout) {
    case Layout::dense:
    case Layout::shifted:
      return strides;
    case Layout::padded: {
      Shape roomy = shape;
      roomy[rank - 1] += 3;
      return contiguous_strides(roomy);
    }
    case Layout::transposed:
      if (rank >= 2) {
        Shape swapped = shape;
        std::swap(swapped[rank - 1], swapped[rank - 2]);
        strides = contiguous_strides(swapped);
        std::swap(strides[rank - 1], strides[rank - 2]);
        return strides;
      }
      [[fallthrough]];
    case Layout::strided:
      for (int dim = 0; dim < rank; ++dim) strides[dim] *= 2;
      return strides;
    case Layout::repeated_rows:
      strides[0] = 0;
      return strides;
    case Layout::repeated_last:
      strides[rank - 1] = 0;
      return strides;
  }
  return strides;
}

/// Marks the bytes that belong to elements.
std::vector<bool> element_bytes(const Shape& shape, const Shape& strides, Dtype dtype, int64_t first, size_t bytes) {
  std::vector<bool> mine(bytes, false);
  for (int64_t n = 0; n < shape.numel(); ++n) {
    int64_t rest = n, offset = 0;
    for (int dim = shape.rank() - 1; dim >= 0; --dim) {
      offset += rest % shape[dim] * strides[dim];
      rest /= shape[dim];
    }
    for (int64_t byte = 0; byte < size_of(dtype); ++byte) mine[first + offset * size_of(dtype) + byte] = true;
  }
  return mine;
}

std::string text(const char* format, auto... values) {
  char line[200];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

}  // namespace

Handle Trial::add(Role role, const Shape& shape, Dtype dtype, const Values* values, Layout layout) {
  Operand operand{role, shape, strides_of(shape, layout), dtype, guard, {}, {}, {}};
  if (layout == Layout::shifted) operand.first += size_of(dtype);
  int64_t extent = 1;
  for (int dim = 0; dim < shape.rank(); ++dim) extent += std::max<int64_t>(shape[dim] - 1, 0) * operand.strides[dim];
  operand.bytes.assign(static_cast<size_t>(operand.first + extent * size_of(dtype) + guard), untouched);
  operand.values.resize(static_cast<size_t>(shape.numel()));
  const View view{operand.bytes.data() + operand.first, shape, operand.strides, dtype, true};
  if (values) {
    Values given = *values;
    kernels::copy(reference, view, dense_view(given, shape));
  } else {
    const auto mine = element_bytes(shape, operand.strides, dtype, operand.first, operand.bytes.size());
    for (size_t i = 0; i < mine.size(); ++i)
      if (mine[i]) operand.bytes[i] = dtype == Dtype::boolean ? 1 : static_cast<char>(0xff);  // NaN or -1
  }
  kernels::copy(reference, dense_view(operand.values, shape), view);
  operands_.push_back(std::move(operand));
  return {static_cast<int>(operands_.size()) - 1};
}

Handle Trial::input(const Shape& shape, Dtype dtype, const Values& values, Layout layout) {
  return add(Role::input, shape, dtype, &values, layout);
}
Handle Trial::output(const Shape& shape, Dtype dtype, Layout layout) {
  return add(Role::output, shape, dtype, nullptr, layout);
}
Handle Trial::both(const Shape& shape, Dtype dtype, const Values& values, Layout layout) {
  return add(Role::both, shape, dtype, &values, layout);
}
void Trial::leave_open(Handle output, std::vector<bool> open) { operands_[output.index].open = std::move(open); }

/// The reference's results, from f64 copies of every floating operand, each input multiplied by 1 +- perturbation.
std::vector<Values> Trial::evaluate(const std::function<void(const Call&)>& call, double perturbation,
                                    uint64_t seed) const {
  std::vector<Values> wide(operands_.size());
  std::vector<std::vector<char>> whole(operands_.size());
  std::vector<View> views;
  for (size_t k = 0; k < operands_.size(); ++k) {
    const Operand& operand = operands_[k];
    wide[k] = operand.values;
    if (is_floating(operand.dtype)) {
      for (size_t i = 0; i < wide[k].size() && operand.role != Role::output; ++i)
        wide[k][i] *= random_word(seed, static_cast<uint32_t>(k), 0, i) & 1 ? 1 + perturbation : 1 - perturbation;
      views.push_back(dense_view(wide[k], operand.shape));
    } else {
      whole[k].resize(static_cast<size_t>(operand.shape.numel() * size_of(operand.dtype)) + 1);
      views.push_back(dense_view(whole[k].data(), operand.shape, operand.dtype));
      kernels::copy(reference, views.back(), dense_view(wide[k], operand.shape));
    }
  }
  Status status{};
  call({reference, &views, &status});
  for (size_t k = 0; k < operands_.size(); ++k)
    if (!is_floating(operands_[k].dtype)) kernels::copy(reference, dense_view(wide[k], operands_[k].shape), views[k]);
  return wide;
}

std::vector<Trial::Expected> Trial::expect(const std::function<void(const Call&)>& call) const {
  constexpr double perturbation = 0x1p-20;
  const std::vector<Values> exact = evaluate(call, 0, 0);
  std::vector<Values> sensitivity(exact.size());
  for (size_t k = 0; k < exact.size(); ++k) sensitivity[k].assign(exact[k].size(), 0);
  for (uint64_t seed = 1; seed <= 10 && !accuracy.exact; ++seed) {
    const std::vector<Values> moved = evaluate(call, perturbation, seed);
    for (size_t k = 0; k < exact.size(); ++k)
      for (size_t i = 0; i < exact[k].size(); ++i)
        if (const double change = std::abs(moved[k][i] - exact[k][i]) / perturbation; change > sensitivity[k][i])
          sensitivity[k][i] = change;
  }
  std::vector<Expected> out(exact.size());
  for (size_t k = 0; k < exact.size(); ++k) {
    Values lower = exact[k], upper = exact[k];
    for (size_t i = 0; i < exact[k].size() && is_floating(operands_[k].dtype); ++i) {
      const double allowed = tolerance(accuracy, exact[k][i], sensitivity[k][i]);
      lower[i] -= allowed;
      upper[i] += allowed;
    }
    for (Values* end : {&lower, &upper}) {  // to the stored type and back
      std::vector<char> stored(end->size() * static_cast<size_t>(size_of(operands_[k].dtype)) + 1);
      const View view = dense_view(stored.data(), operands_[k].shape, operands_[k].dtype);
      kernels::copy(reference, view, dense_view(*end, operands_[k].shape));
      kernels::copy(reference, dense_view(*end, operands_[k].shape), view);
    }
    out[k] = {std::move(lower), std::move(upper), exact[k]};
  }
  return out;
}

Trial::Outcome Trial::execute(const std::function<void(const Call&)>& call, Device device) const {
  Runtime& runtime = runtime_of(device);
  const Stream stream = context().stream(device);
  std::vector<Tensor> buffers;
  std::vector<View> views;
  for (const Operand& operand : operands_) {
    buffers.push_back(empty({static_cast<int64_t>(operand.bytes.size())}, Dtype::u8, device));
    char* data = static_cast<char*>(buffers.back().view().data);
    runtime.copy(stream, data, operand.bytes.data(), static_cast<int64_t>(operand.bytes.size()));
    views.push_back({data + operand.first, operand.shape, operand.strides, operand.dtype, true});
  }
  call({device, &views, context().status(device)});
  Outcome out;
  try {
    context().check_status(device);
  } catch (const ValueError&) {
    out.reported = true;
  }
  for (size_t k = 0; k < operands_.size(); ++k) {
    out.bytes.push_back(operands_[k].bytes);
    runtime.copy(stream, out.bytes[k].data(), buffers[k].view().data, static_cast<int64_t>(out.bytes[k].size()));
    runtime.synchronize(stream);
  }
  return out;
}

/// What is wrong with the bytes of an operand after the call; empty when nothing is.
std::string Trial::compare(const Operand& operand, const Expected& expected, const std::vector<char>& bytes) const {
  if (operand.role == Role::input) return bytes == operand.bytes ? "" : "an input was overwritten";
  const auto mine = element_bytes(operand.shape, operand.strides, operand.dtype, operand.first, bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i)
    if (!mine[i] && bytes[i] != operand.bytes[i])
      return text("byte %td beside element 0 was overwritten", static_cast<std::ptrdiff_t>(i) - operand.first);
  Values got(operand.values.size());
  std::vector<char> copy = bytes;
  kernels::copy(reference, dense_view(got, operand.shape),
                View{copy.data() + operand.first, operand.shape, operand.strides, operand.dtype, true});
  for (size_t i = 0; i < got.size(); ++i) {
    if (i < operand.open.size() && operand.open[i]) continue;
    const double low = expected.lower[i], high = expected.upper[i];
    const bool right = std::isnan(low) ? std::isnan(got[i]) : got[i] >= low && got[i] <= high;
    if (!right)
      return text("element %zu is %.9g, exact %.9g, allowed %.9g to %.9g", i, got[i], expected.exact[i], low, high);
  }
  return "";
}

std::string Trial::verdict(const std::function<void(const Call&)>& call, Device device, bool reports) const {
  return verdict(expect(call), call, device, reports);
}

std::string Trial::verdict(const std::vector<Expected>& expected, const std::function<void(const Call&)>& call,
                           Device device, bool reports) const {
  const int outer_threads = threads();
  set_threads(1);
  const auto alone = execute(call, device);
  set_threads(2);
  const auto together = execute(call, device);
  set_threads(outer_threads);
  if (alone.reported != reports) return reports ? "a bad index was not reported" : "a bad index was reported";
  if (alone.bytes != together.bytes) return "1 and 2 threads differ";
  for (size_t k = 0; k < operands_.size(); ++k)
    if (std::string found = compare(operands_[k], expected[k], alone.bytes[k]); !found.empty())
      return join("operand ", k, " ", operands_[k].dtype, operands_[k].shape, ": ", found);
  return "";
}

void Trial::run(const std::function<void(const Call&)>& call, bool reports) const {
  tried().insert(row_);
  const std::vector<Expected> expected = expect(call);
  for (Device device : devices()) {
    if (!row_->has(device)) continue;
    INFO(row_->name() << " on " << name_of(device) << ", " << label_);
    CHECK(verdict(expected, call, device, reports) == "");
  }
}

Contract::Contract(std::vector<const KernelRow*> rows, void (*check)(), Where where) {
  registered().push_back({std::move(rows), check, where.file_name()});
}

void check_contracts(Where where) {
  for (const Registered& contract : registered()) {
    if (contract.file != where.file_name()) continue;
    contract.check();
    for (const KernelRow* row : contract.rows) {
      INFO("the contract names " << row->name() << " and never tries it");
      CHECK(tried().count(row) == 1);
    }
  }
}

Values uniform(int64_t count, double low, double high, uint64_t seed) {
  Values out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = low + (high - low) * to_uniform(random_word(seed, 0, 0, i));
  return out;
}

Values whole(int64_t count, int64_t low, int64_t high, uint64_t seed) {
  Values out = uniform(count, static_cast<double>(low), static_cast<double>(high), seed);
  for (double& value : out) value = std::floor(value);
  return out;
}

Values special(int64_t count) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double list[] = {0.5,       std::numeric_limits<double>::quiet_NaN(),
                             0.0,       -0.0,
                             infinity,  1e-41,
                             -infinity, 3e38,
                             -1e-41,    -3e38,
                             1.0,       6e-8,
                             -6e-5,     -1.0,
                             65504,     -20.5,
                             88.8,      -104,
                             1e4};
  Values out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = list[i % std::size(list)];
  return out;
}

}  // namespace cinta::contract

using namespace cinta;
using namespace cinta::contract;

TEST_CASE("every row has a contract, and the support matrix", "[kernel_contract]") {
  std::set<const KernelRow*> named;
  for (const Registered& contract : registered()) named.insert(contract.rows.begin(), contract.rows.end());
  for (const KernelRow* row : kernel_table()) {
    INFO("row " << row->name());
    CHECK(named.count(row) == 1);
    CHECK(row->has(reference));
  }
  for (Device device : devices()) {
    std::string missing;
    size_t present = 0;
    for (const KernelRow* row : kernel_table())
      row->has(device) ? void(++present)
                       : void(missing += std::string(missing.empty() ? "; without " : ", ") + row->name());
    std::printf("%s: %zu of %zu rows%s\n", name_of(device).c_str(), present, kernel_table().size(), missing.c_str());
  }
}
