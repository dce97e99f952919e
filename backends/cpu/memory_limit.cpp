// What Linux says of the memory that a process may use.
#include "cinta/backends/cpu/memory_limit.h"

#ifdef __linux__
#include <sys/sysinfo.h>
#endif

#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>
#include <string>

namespace cinta {
namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();
constexpr int64_t nothing_pretended = -1;
std::atomic<int64_t> pretended{nothing_pretended};

/// The number in a file; as much as can be counted where it says "max", or is not there.
int64_t number_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  int64_t bytes = 0;
  return in >> bytes ? bytes : unlimited;
}

int64_t ask_system() {
#ifdef __linux__
  struct sysinfo system {};
  if (sysinfo(&system) == 0) {
    const int64_t unit = system.mem_unit;
    return left_by_control_groups("/", static_cast<int64_t>(system.totalram) * unit,
                                  static_cast<int64_t>(system.totalswap) * unit);
  }
#endif
  return unlimited;
}

}  // namespace

int64_t left_by_control_groups(const std::filesystem::path& root, int64_t memory, int64_t swap) {
  int64_t both = memory + swap;  // which version 1 limits together
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // number:controllers:/path; of version 2 without controllers
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",memory,") == std::string::npos) continue;
    const std::filesystem::path top = root / (unified ? "sys/fs/cgroup" : "sys/fs/cgroup/memory");
    // What a group above allows holds, too. Within a container the path may be one outside of it: then the top is the
    // container's own group.
    std::filesystem::path group = std::filesystem::path(line.substr(second + 1)).relative_path();
    for (bool at_top = false; !at_top; group = group.parent_path()) {
      at_top = group.empty();
      const std::filesystem::path files = top / group;
      memory = std::min(memory, number_in(files / (unified ? "memory.max" : "memory.limit_in_bytes")));
      if (unified)
        swap = std::min(swap, number_in(files / "memory.swap.max"));
      else
        both = std::min(both, number_in(files / "memory.memsw.limit_in_bytes"));
    }
  }
  return std::min(memory + swap, both);
}

int64_t memory_limit() {
  static const int64_t bytes = ask_system();
  const int64_t instead = pretended;
  return instead == nothing_pretended ? bytes : instead;
}

void pretend_memory_limit(std::optional<int64_t> bytes) { pretended = bytes.value_or(nothing_pretended); }

}  // namespace cinta
