// The main function of the test program, alone in its file because it takes Catch2 seconds to compile.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
