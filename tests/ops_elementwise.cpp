// Rows of the op table: arithmetic, functions of one tensor, comparisons.
#include <catch2/catch.hpp>

#include "cinta/ops/elementwise.h"
#include "cinta/ops/shape.h"
#include "op_table.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

using In = const Operands&;

const Input x = real({batch, 2, 5}), same = real({batch, 2, 5}), column = real({2, 1}), one = real({}),
            positive = real({batch, 2, 5}, 0.5, 3);

const OpTable table({
    {"add", {x, same}, [](In x) { return add(x[0], x[1]); }},
    {"add", {x, column}, [](In x) { return add(x[0], x[1]); }, "broadcast"},
    {"add", {one, x}, [](In x) { return add(x[0], x[1]); }, "scalar"},
    {"subtract", {x, same}, [](In x) { return subtract(x[0], x[1]); }},
    {"subtract", {column, x}, [](In x) { return subtract(x[0], x[1]); }, "broadcast"},
    {"multiply", {x, same}, [](In x) { return multiply(x[0], x[1]); }},
    {"multiply", {x, column}, [](In x) { return multiply(x[0], x[1]); }, "broadcast"},
    {"multiply", {x}, [](In x) { return multiply(x[0], x[0]); }, "by itself"},
    {"divide", {x, positive}, [](In x) { return divide(x[0], x[1]); }},
    {"divide", {column, positive}, [](In x) { return divide(x[0], x[1]); }, "broadcast"},
    {"affine", {x}, [](In x) { return affine(x[0], -1.5, 0.25); }},
    {"operator+", {x, same}, [](In x) { return (x[0] + x[1]) + 0.5; }},
    {"operator-", {x, same}, [](In x) { return (-x[0] - x[1]) - 0.5; }},
    {"operator*", {x, same}, [](In x) { return (2 * x[0]) * (x[1] * 0.5); }},
    {"operator/", {x, positive}, [](In x) { return x[0] / x[1]; }},

    {"exp", {x}, [](In x) { return exp(x[0]); }},
    {"log", {positive}, [](In x) { return log(x[0]); }},
    {"sqrt", {positive}, [](In x) { return sqrt(x[0]); }},
    {"rsqrt", {positive}, [](In x) { return rsqrt(x[0]); }},
    {"pow", {positive}, [](In x) { return pow(x[0], 1.7); }},
    {"pow", {x}, [](In x) { return pow(x[0], 3); }, "whole"},
    {"pow", {x}, [](In x) { return pow(x[0], 0); }, "zero"},
    {"abs", {x}, [](In x) { return abs(x[0]); }},
    {"erf", {x}, [](In x) { return erf(x[0]); }},
    {"clamp", {x}, [](In x) { return clamp(x[0], -1, 1.2); }},

    OpCase("equal", {x, column}, [](In x) { return equal(x[0], x[1]); }).untracked(),
    OpCase("equal", {whole({batch, 7}, 0, 3), whole({7}, 0, 3)}, [](In x) { return equal(x[0], x[1]); }).untracked(),
    OpCase("not_equal", {whole({batch, 7}, 0, 3), whole({}, 1, 2)}, [](In x) { return not_equal(x[0], x[1]); })
        .untracked(),
    OpCase("less", {x, column}, [](In x) { return less(x[0], x[1]); }).untracked(),
    OpCase("less_equal", {x, column}, [](In x) { return less_equal(x[0], x[1]); }).untracked(),
    OpCase("greater", {x, column}, [](In x) { return greater(x[0], x[1]); }).untracked(),
    OpCase("greater_equal", {x, column}, [](In x) { return greater_equal(x[0], x[1]); }).untracked(),
    {"where",
     {whole({batch, 2, 5}, 0, 2, Dtype::boolean), x, column},
     [](In x) { return cinta::where(x[0], x[1], x[2]); }},
    {"where",
     {whole({2, 1}, 0, 2, Dtype::boolean), one, x},
     [](In x) { return cinta::where(x[0], x[1], x[2]); },
     "broadcast"},
});

}  // namespace

TEST_CASE("elementwise ops", "[ops]") { check_ops(); }
