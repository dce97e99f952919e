// Rows of a table by index. Indices are i64; one outside the table is reported in `status` (core/context.h) and read as
// 0. A scatter, whose indices a gather has seen before, passes over such rows.
#pragma once
#include "cinta/backends/kernel.h"

namespace cinta::kernels {

/// y[R,N] = table[index[R], :].
inline constinit Kernel<void(View y, View table, View index, void* status)> gather_rows{"gather_rows"};
/// dtable[V,N] = beta * dtable; then dtable[index[r]] += dy[r] in the order of r, in f32 and rounded once. Rows
/// whose index equals `skip` add nothing (skip = -1: none).
inline constinit Kernel<void(View dtable, View dy, View index, int64_t skip, float beta)> scatter_add_rows{
    "scatter_add_rows"};
/// y[R,N] = word[ids] + position[places] + type[types]: BERT's embedding sum. types may be absent (all 0), places too:
/// row r stands at place r % sequence.
inline constinit Kernel<void(View y, View word, View position, View type, View ids, View types, View places,
                             int64_t sequence, void* status)>
    embedding_sum{"embedding_sum", fused_row};

}  // namespace cinta::kernels
