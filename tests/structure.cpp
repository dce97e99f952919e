// Laws of the source tree: floors, file length, include cycles, rows with their columns.
#include <catch2/catch.hpp>

TEST_CASE("tree", "[structure]") {}
