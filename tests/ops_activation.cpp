// Rows of the op table: activations. A new activation is one line here.
#include <catch2/catch.hpp>

#include "cinta/ops/activation.h"
#include "op_table.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

using In = const Operands&;

const Input x = real({batch, 4, 5}, -4, 4);

const OpTable table({
    {"relu", {x}, [](In x) { return relu(x[0]); }},
    {"leaky_relu", {x}, [](In x) { return leaky_relu(x[0], 0.1); }},
    {"gelu", {x}, [](In x) { return gelu(x[0]); }},
    {"gelu_tanh", {x}, [](In x) { return gelu_tanh(x[0]); }},
    {"silu", {x}, [](In x) { return silu(x[0]); }},
    {"tanh", {x}, [](In x) { return tanh(x[0]); }},
    {"sigmoid", {x}, [](In x) { return sigmoid(x[0]); }},
    {"softplus", {x}, [](In x) { return softplus(x[0]); }},
    {"elu", {x}, [](In x) { return elu(x[0], 1.3); }},
});

}  // namespace

TEST_CASE("activations", "[ops]") { check_ops(); }
