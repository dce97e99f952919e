// Rows of a table by index, and the embedding sum of BERT. Indices are i64; one outside the table is found on the
// device and read as 0, and thrown as a ValueError: at once by devices that share the host's memory, by others at the
// host's next read (Context::check_status).
#pragma once
#include "cinta/core/tensor.h"

namespace cinta {

/// table[V,N] and index[..] -> [..,N].
Tensor gather_rows(const Tensor& table, const Tensor& index, Where where = Where::current());
/// The slices of x along `dim` that index[K] names, in its order.
Tensor index_select(const Tensor& x, int dim, const Tensor& index, Where where = Where::current());
/// gather_rows whose gradient leaves out row `skip`, the padding token (-1: none). Throws ValueError for a row that is
/// not there.
Tensor embedding(const Tensor& table, const Tensor& index, int64_t skip = -1, Where where = Where::current());
/// word[ids] + position[places] + type[types] for ids, types (absent: all 0) and places (absent: 0 .. S-1 in each
/// sample) [B,S] -> [B,S,N] (Devlin et al. 2019). Throws ShapeError when S is longer than the position table and no
/// places are given. The gradient of `word` leaves out row `skip`.
Tensor embedding_sum(const Tensor& word, const Tensor& position, const Tensor& type, const Tensor& ids,
                     const Tensor& types = {}, const Tensor& places = {}, int64_t skip = -1,
                     Where where = Where::current());

}  // namespace cinta
