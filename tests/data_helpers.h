// What the tests of readers share: the text of an error, and real data where it is at hand.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

namespace cinta::testing {

/// The message of the exception of type E that `run` throws; "no error" when it throws none.
template <class E, class Run>
std::string error_of(Run&& run) {
  try {
    run();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

/// Where `name` lies among the data for tests: under CINTA_TEST_DATA or beside the source tree; empty when absent.
inline std::string test_data(const std::string& name) {
  const char* folder = std::getenv("CINTA_TEST_DATA");
  const std::string path =
      (folder != nullptr ? folder : std::string(CINTA_SOURCE_DIR) + "/../shared/data") + "/" + name;
  return std::filesystem::exists(path) ? path : "";
}

}  // namespace cinta::testing
