// Gathering rows and its transpose, scattering them: each is the other's backward.
#include "cinta/ops/embedding.h"

#include "cinta/autograd/function.h"
#include "cinta/backends/kernels/elementwise.h"
#include "cinta/backends/kernels/embedding.h"
#include "cinta/backends/kernels/reduce.h"
#include "cinta/core/context.h"
#include "cinta/ops/check.h"
#include "cinta/ops/elementwise.h"
#include "cinta/ops/reduce.h"
#include "cinta/ops/rows.h"
#include "cinta/ops/shape.h"

namespace cinta {
namespace {

using autograd::apply;
using autograd::mode;
using autograd::Saved;
using autograd::Sink;
using autograd::Sinks;

/// [rows, N] with dy[r] added to row index[r].
struct ScatterRows {
  static constexpr const char* name = "scatter_rows";
  static constexpr bool backward_uses_ops = true;
  int64_t rows, skip;
  Saved index;
  Tensor forward(const Tensor& dy, const Tensor& at) {
    Tensor out = empty({rows, dy.size(-1)}, dy.dtype(), dy.device());
    kernels::scatter_add_rows(dy.device(), out, as_rows(dy), as_flat(at), skip, 0.0f);
    return out;
  }
  void save(const Tensor&, const Tensor&, const Tensor& at) { index.keep(at); }
  void backward(const Tensor& d, Sinks sinks) {
    const Tensor& at = index.get();
    Tensor rows_of_d = gather_rows(d, at);
    if (skip >= 0) {
      const Tensor counts = not_equal(at, full({}, static_cast<double>(skip), at.dtype(), at.device()));
      rows_of_d = rows_of_d * unsqueeze(cast(counts, d.dtype()), -1);
    }
    sinks[0].put(rows_of_d);
  }
};

/// Contributes the rows of dy, scattered, to the gradient of a table [rows, N].
void put_scattered(Sink& sink, const Tensor& dy, const Tensor& index, int64_t rows, int64_t skip) {
  if (!sink.wanted()) return;
  if (mode().recording) return sink.put(apply(ScatterRows{rows, skip, {}}, Where(), dy, index));
  auto [destination, beta] = sink.target({rows, dy.size(-1)}, dy.device());
  kernels::scatter_add_rows(dy.device(), destination, as_rows(dy), as_flat(index), skip, beta);
}

struct GatherRows {
  const char* op;
  int64_t skip;
  Saved index;
  int64_t rows = 0;
  static constexpr bool backward_uses_ops = true;
  const char* name() const { return op; }
  Tensor forward(const Tensor& table, const Tensor& at) {
    rows = table.size(0);
    Shape shape = at.shape();
    shape.push_back(table.size(1));
    Tensor out = empty(shape, table.dtype(), table.device());
    const Device device = table.device();
    const auto run = [&](const Tensor& to, const Tensor& from) {
      kernels::gather_rows(device, as_rows(to), contiguous(from), as_flat(at), context().status(device));
    };
    run(out, table);
    // Of tokens that are looked up nobody reads a copy: norms come first. A layer's result is gathered for products.
    if (table.storage()->shadow.of == Shadow::Of::result) autograd::carry_shadow(op, out, table, run);
    return out;
  }
  void save(const Tensor&, const Tensor&, const Tensor& at) { index.keep(at); }
  void backward(const Tensor& dy, Sinks sinks) { put_scattered(sinks[0], dy, index.get(), rows, skip); }
};

/// Contributes `part`, summed over dimension 0, to the first rows of the gradient of a table [rows, N].
void put_first_rows(Sink& sink, const Tensor& part, int64_t rows) {
  if (!sink.wanted()) return;
  const int64_t used = part.size(1), columns = part.size(2);
  if (mode().recording) return sink.put(pad(sum(part, {0}), 0, 0, rows - used));
  auto [destination, beta] = sink.target({rows, columns}, part.device());
  const Tensor first = destination.with_layout({1, used, columns}, {0, columns, 1}, destination.offset());
  kernels::sum(part.device(), first, part, beta);
  if (beta == 0 && used < rows)
    kernels::fill(part.device(),
                  destination.with_layout({rows - used, columns}, {columns, 1}, destination.offset() + used * columns),
                  0);
}

/// Linear in its tables, so nothing of them is kept.
struct EmbeddingSum {
  static constexpr const char* name = "embedding_sum";
  static constexpr bool backward_uses_ops = true;
  int64_t skip;
  Saved ids, types, places;
  int64_t words = 0, positions = 0, kinds = 0;
  static std::array<autograd::FusedRow, 1> fused_rows() { return {{{&kernels::embedding_sum}}}; }
  Tensor forward(const Tensor& word, const Tensor& position, const Tensor& type, const Tensor& id, const Tensor& kind,
                 const Tensor& place) {
    words = word.size(0), positions = position.size(0), kinds = type.size(0);
    const Device device = word.device();
    Tensor out = empty({id.size(0), id.size(1), word.size(1)}, word.dtype(), device);
    const Tensor flat_kinds = kind ? as_flat(kind) : Tensor(), flat_places = place ? as_flat(place) : Tensor();
    const Tensor all_places = contiguous(position), all_kinds = contiguous(type);
    View places_met = all_places.view(), kinds_met = all_kinds.view();  // who watches counts what is read
    if (!place) places_met.shape[0] = id.size(1);
    if (!kind) kinds_met.shape[0] = 1;
    kernels::embedding_sum(device, as_rows(out), contiguous(word), places_met, kinds_met, as_flat(id),
                           flat_kinds.view(), flat_places.view(), id.size(1), context().status(device));
    return out;
  }
  void save(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor& id, const Tensor& kind,
            const Tensor& place) {
    ids.keep(id);
    types.keep(kind);
    places.keep(place);
  }
  void backward(const Tensor& dy, Sinks sinks) {
    put_scattered(sinks[0], dy, ids.get(), words, skip);
    if (places)
      put_scattered(sinks[1], dy, places.get(), positions, -1);
    else
      put_first_rows(sinks[1], dy, positions);
    if (types)
      put_scattered(sinks[2], dy, types.get(), kinds, -1);
    else
      put_first_rows(sinks[2], reshape(dy, {dy.size(0) * dy.size(1), 1, dy.size(2)}), kinds);
  }
  Tensor composed(std::span<const Tensor> in) {
    const Tensor &id = in[3], &kind = in[4], &place = in[5];
    const Tensor at = place ? gather_rows(in[1], place) : slice(in[1], 0, 0, id.size(1));
    const Tensor of_kind = kind ? gather_rows(in[2], kind) : slice(in[2], 0, 0, 1);
    const Dtype dtype = in[0].dtype();  // the tables may have several
    return embedding(in[0], id, skip) + cast(at, dtype) + cast(of_kind, dtype);
  }
};

void check_table(const KernelRow& row, const char* op, const char* name, const Tensor& table, Where where) {
  check_floating(row, op, name, table, where);
  require<ShapeError>(table.rank() == 2, op, where, name, " is a table of rows [V,N], given ", table);
}

void check_rows(const char* op, const char* name, const Tensor& table, Where where) {
  require<ShapeError>(table.size(0) > 0, op, where, name, " has at least one row, given ", table);
}

void check_skip(const char* op, const char* name, int64_t skip, const Tensor& table, Where where) {
  require(skip >= -1 && skip < table.size(0), op, where, "skip is a row of ", name, ", or -1 for none, given ", skip,
          " beside ", table);
}

Tensor gather(const char* op, const Tensor& table, const Tensor& index, int64_t skip, Where where) {
  check_table(kernels::gather_rows, op, "table", table, where);
  check_skip(op, "table", skip, table, where);
  check_index(op, "index", index, Dtype::i64, table, where);
  if (index.numel() > 0) check_rows(op, "table", table, where);
  Tensor rows = apply(GatherRows{op, skip, {}}, where, table, index);
  context().check_status_of(op, table.device(), where);
  return rows;
}

}  // namespace

Tensor gather_rows(const Tensor& table, const Tensor& index, Where where) {
  return gather("gather_rows", table, index, -1, where);
}

Tensor embedding(const Tensor& table, const Tensor& index, int64_t skip, Where where) {
  return gather("embedding", table, index, skip, where);
}

Tensor index_select(const Tensor& x, int dim, const Tensor& index, Where where) {
  check_floating(kernels::gather_rows, "index_select", "x", x, where);
  const int normal = normalize_dim(dim, x.rank(), "index_select", where);
  check_index("index_select", "index", index, Dtype::i64, x, where);
  require<ShapeError>(index.rank() == 1, "index_select", where, "index is a list [K], given ", index);
  const Tensor front = transpose(x, 0, normal, where);
  Shape shape = front.shape();
  const int64_t rows = shape[0];
  require<ShapeError>(rows > 0, "index_select", where, "x has at least one slice along dimension ", dim, ": ", x);
  const Tensor table = reshape(front, {rows, x.numel() / rows}, where);
  shape[0] = index.size(0);
  return transpose(reshape(gather("index_select", table, index, -1, where), shape, where), 0, normal, where);
}

Tensor embedding_sum(const Tensor& word, const Tensor& position, const Tensor& type, const Tensor& ids,
                     const Tensor& types, const Tensor& places, int64_t skip, Where where) {
  constexpr const char* op = "embedding_sum";
  check_table(kernels::embedding_sum, op, "word", word, where);
  check_rows(op, "word", word, where);
  check_skip(op, "word", skip, word, where);
  for (const auto& [name, table] : {std::pair{"position", &position}, std::pair{"type", &type}}) {
    check_table(kernels::embedding_sum, op, name, *table, where);
    check_rows(op, name, *table, where);
    check_like(op, name, *table, word, where);
    require<ShapeError>(table->size(1) == word.size(1), op, where, name, " has rows as long as those of word: ", *table,
                        " beside ", word);
  }
  check_index(op, "ids", ids, Dtype::i64, word, where);
  require<ShapeError>(ids.rank() == 2, op, where, "ids[B,S], given ", ids);
  require<ShapeError>(places || ids.size(1) <= position.size(0), op, where, "a sequence of ", ids.size(1),
                      " is longer than the position table: ids ", ids, ", position ", position);
  for (const auto& [name, index] : {std::pair{"types", &types}, std::pair{"places", &places}}) {
    if (!*index) continue;
    check_index(op, name, *index, Dtype::i64, word, where);
    require<ShapeError>(index->shape() == ids.shape(), op, where, name, " has the shape of ids: ", *index, " beside ",
                        ids);
  }
  Tensor sum = apply(EmbeddingSum{skip, {}, {}, {}}, where, word, position, type, ids, types, places);
  context().check_status_of(op, word.device(), where);
  return sum;
}

}  // namespace cinta
