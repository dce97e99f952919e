// Rows of a table by index.
#include "cinta/backends/kernels/embedding.h"

#include "cinta/backends/reference/element.h"
#include "cinta/backends/reference/status.h"

namespace cinta::oracle {
namespace {

/// Index number r of `indices`; one outside the table is reported and read as 0.
int64_t index_at(const View& indices, int64_t r, int64_t limit, void* status) {
  const int64_t index = nth(indices, r).integer();
  return inside(index, limit, r, status) ? index : 0;
}

void gather(View y, View table, View index, void* status) {
  for (int64_t r = 0; r < y.size(0); ++r) {
    const int64_t source = index_at(index, r, table.size(0), status);
    for (int64_t j = 0; j < y.size(1); ++j) at(y, r, j) = at(table, source, j);
  }
}

void scatter_add(View dtable, View dy, View index, int64_t skip, float beta) {
  for (int64_t v = 0; v < dtable.size(0); ++v)
    for (int64_t j = 0; j < dtable.size(1); ++j) {
      double sum = 0;
      for (int64_t r = 0; r < dy.size(0); ++r)
        if (const int64_t row = nth(index, r).integer(); row == v && row != skip) sum += at(dy, r, j);
      blend(at(dtable, v, j), sum, beta);
    }
}

void add_embeddings(View y, View word, View position, View type, View ids, View types, View places, int64_t sequence,
                    void* status) {
  for (int64_t r = 0; r < y.size(0); ++r) {
    const int64_t id = index_at(ids, r, word.size(0), status);
    const int64_t kind = types ? index_at(types, r, type.size(0), status) : 0;
    const int64_t place = places ? index_at(places, r, position.size(0), status) : r % sequence;
    for (int64_t j = 0; j < y.size(1); ++j) at(y, r, j) = at(word, id, j) + at(position, place, j) + at(type, kind, j);
  }
}

const Install gather_rows{kernels::gather_rows, reference, gather};
const Install scatter_add_rows{kernels::scatter_add_rows, reference, scatter_add};
const Install embedding_sum{kernels::embedding_sum, reference, add_embeddings};

}  // namespace
}  // namespace cinta::oracle
