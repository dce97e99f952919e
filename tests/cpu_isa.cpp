// The variants of the CPU's kernels: newer instructions stand only where they are chosen at run time, and the choice
// can be capped from outside.
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

namespace {

struct Ended {
  std::string output;
  int status;
};

/// What a shell command prints, errors included, and its status.
Ended run(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  Ended ended;
  std::array<char, 65536> part;
  while (const size_t n = fread(part.data(), 1, part.size(), pipe)) ended.output.append(part.data(), n);
  ended.status = pclose(pipe);
  return ended;
}

}  // namespace

TEST_CASE("instructions beyond the baseline stand in their own namespaces", "[cpu_isa]") {
  // The linker keeps one copy of each inline function: were a shared one compiled for a newer processor, an older one
  // would stop at it. Vector registers wider than 16 bytes give such code away.
  const std::string library = CINTA_BINARY_DIR "/lib/libcinta.so";
#ifdef __AVX__
  WARN("skipped: the whole build asks for newer instructions");
  return;
#endif
  if (run("objdump --version").status != 0 || !std::filesystem::exists(library)) {
    WARN("skipped: no objdump, or no " + library);
    return;
  }
  const Ended found = run("objdump -d --no-show-raw-insn " + library +
                          " | awk '/^[0-9a-f]+ <.*>:$/ {name = $2} /%[yz]mm/ {seen[name] = 1} "
                          "END {for (name in seen) print name}'");
  CHECK(found.status == 0);
  int variants = 0, strays = 0;
  for (size_t begin = 0; begin < found.output.size();) {
    const size_t end = found.output.find('\n', begin);
    const std::string name = found.output.substr(begin, end - begin);
    begin = end + 1;
    const bool own = name.find("8cpu_avx2") != name.npos || name.find("10cpu_avx512") != name.npos;
    own ? ++variants : ++strays;
    INFO(name);
    CHECK(own);
  }
#ifdef __x86_64__
  CHECK(variants > 100);
#endif
}

TEST_CASE("an unknown instruction set is refused by name", "[cpu_isa]") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const Ended ended = run("CINTA_ISA=sse9 '" + self + "' 'results do not depend on the number of threads'");
  CHECK(ended.status != 0);
  INFO(ended.output);
  for (const char* word : {"CINTA_ISA", "baseline", "avx512", "'sse9'"})
    CHECK(ended.output.find(word) != std::string::npos);
}

TEST_CASE("the cap holds for oneDNN as well", "[cpu_isa]") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const Ended ended =
      run("CINTA_ISA=avx2 ONEDNN_VERBOSE=1 DNNL_VERBOSE=1 '" + self + "' 'a batch is the products of its matrices'");
  if (ended.output.find("dnnl_verbose") == std::string::npos &&
      ended.output.find("onednn_verbose") == std::string::npos) {
    WARN("skipped: no oneDNN here, or one that does not say what it runs");
    return;
  }
  CHECK(ended.status == 0);
  CHECK(ended.output.find("matmul") != std::string::npos);
  CHECK(ended.output.find("avx512") == std::string::npos);
}
