// Rows of the op table: reductions.
#include <catch2/catch.hpp>

#include "cinta/ops/elementwise.h"
#include "cinta/ops/reduce.h"
#include "op_table.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

using In = const Operands&;

const Input x = real({batch, 4, 5}), whole_x = real({3, 4, 5});

const OpTable table({
    {"sum", {x}, [](In x) { return sum(x[0]); }},
    {"sum",
     {x},
     [](In x) {
       return sum(x[0], {0, -1});
     },
     "two dimensions"},
    {"sum", {x}, [](In x) { return sum(x[0], {1}, true); }, "kept"},
    {"mean", {whole_x}, [](In x) { return mean(x[0]); }},
    {"mean", {x}, [](In x) { return mean(x[0], {1}); }, "one dimension"},
    {"var", {whole_x}, [](In x) { return var(x[0]); }},
    {"var", {x}, [](In x) { return var(x[0], {-1}, 0, true); }, "kept"},
    {"max", {whole_x}, [](In x) { return max(x[0]); }},
    {"max",
     {x},
     [](In x) {
       return max(x[0], {1, 2});
     },
     "two dimensions"},
    OpCase("argmax", {x}, [](In x) { return argmax(x[0], 1); }).untracked(),
    OpCase(
        "argmax", {x}, [](In x) { return argmax(x[0], -1, true); }, "kept")
        .untracked(),
    OpCase("logsumexp", {whole_x}, [](In x) { return logsumexp(x[0]); }).composed([](In x) {
      return log(sum(exp(x[0])));
    }),
    {"logsumexp", {x}, [](In x) { return logsumexp(x[0], {1}, true); }, "kept"},
    {"sum_to",
     {x},
     [](In x) {
       return sum_to(x[0], {4, 1});
     }},
});

}  // namespace

TEST_CASE("reductions", "[ops]") { check_ops(); }
