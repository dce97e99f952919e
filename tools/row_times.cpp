// Work is told from a row's name and the shapes it is given.
#include "tools/row_times.h"

#include <algorithm>

#include "cinta/train/timing.h"

namespace cinta::tools {
namespace {

/// Of the elements that are there, not of their repetitions.
double bytes_of(const View& view) {
  if (!view) return 0;
  double bytes = static_cast<double>(size_of(view.dtype));
  for (int i = 0; i < view.rank(); ++i)
    if (view.strides[i] != 0) bytes *= static_cast<double>(view.shape[i]);
  return bytes;
}

double count(const View& view) { return static_cast<double>(view.numel()); }

/// Of a product, or of so many passes of one [queries, keys] x [keys, head] product over attention.
double flops_of(std::string_view row, std::span<const View> views, const SeenKeys& seen) {
  const auto attention = [&](const View& q, const View& k, int products) {
    const double part = q.size(-2) == k.size(-2) ? seen.of_all : seen.of_some;
    return 2.0 * products * count(q) * part * static_cast<double>(k.size(-2));
  };
  if (row == "matmul" || row == "linear" || row == "scaled_matmul")
    return 2 * count(views[0]) * static_cast<double>(views[1].size(-1));
  if (row == "linear_weight_backward") return 2 * count(views[0]) * static_cast<double>(views[2].size(0));
  if (row == "attention") return attention(views[2], views[3], 2);
  if (row == "attention_backward") return attention(views[4], views[5], 5);  // the scores are made again
  return 0;
}

}  // namespace

RowWork work_of(std::string_view row, std::span<const View> views, const SeenKeys& seen) {
  RowWork work{.flops = flops_of(row, views, seen)};
  for (const View& view : views) work.held += bytes_of(view);
  // Of a table by index only the rows that are met count, each as if it were met once; and of one that is scattered
  // to, as if it were added to, though it may be set to 0 first.
  const auto met = [&](size_t table, size_t rows) {
    work.held -= std::max(0.0, bytes_of(views[table]) - bytes_of(views[rows]));
  };
  if (row == "gather_rows") met(1, 0);
  if (row == "embedding_sum") met(1, 0), met(2, 0), met(3, 0);
  if (row == "scatter_add_rows") met(0, 1);
  work.bytes = work.held;
  if (row == "affine_backward" || row == "divide_by_backward") work.bytes -= bytes_of(views[2]);  // a constant slope
  if (row == "accumulate") work.bytes += bytes_of(views[0]);
  if (row == "adamw") work.bytes += bytes_of(views[0]) + bytes_of(views[2]) + bytes_of(views[3]);
  if (row == "sgd") work.bytes += bytes_of(views[0]) + bytes_of(views[2]);
  if (row == "scatter_add_rows") work.bytes += std::min(bytes_of(views[0]), bytes_of(views[1]));
  return work;
}

void RowTimes::before(const KernelRow& row, std::span<const View> views) {
  if (depth_++ > 0) return;
  calls.push_back({&row, 0, 0, work_of(row.name(), views, seen_)});
  calls.back().begin = train::seconds();  // last, so that this bookkeeping is not the row's
}

void RowTimes::after(const KernelRow&, std::span<const View>) {
  const double now = train::seconds();
  if (--depth_ == 0) calls.back().end = now;
}

}  // namespace cinta::tools
