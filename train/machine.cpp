// Read from the system's own tables.
#include "cinta/train/machine.h"

#include <unistd.h>

#include <memory>
#include <string_view>

#include "cinta/backends/library.h"
#include "cinta/backends/threads.h"
#include "cinta/core/error.h"
#include "cinta/train/readable.h"

namespace cinta::train {
namespace {

std::string processor() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/cpuinfo", "r"), &std::fclose);
  char line[512];
  while (file && std::fgets(line, sizeof line, file.get())) {
    std::string_view text = line;
    if (!text.starts_with("model name") || text.find(": ") == text.npos) continue;
    text.remove_prefix(text.find(": ") + 2);
    return std::string(text.substr(0, text.find('\n')));
  }
  return "";
}

}  // namespace

int64_t memory_bytes() {
  const int64_t pages = ::sysconf(_SC_PHYS_PAGES);
  return pages > 0 ? pages * ::sysconf(_SC_PAGESIZE) : 0;
}

std::string machine_text() {
  const std::string name = processor();
  const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  std::string out = name + (name.empty() ? "" : ", ") + instruction_set() + ", ";
  out += join(threads(), threads() == 1 ? " thread" : " threads");
  if (processors > 0) out += join(" on ", processors, processors == 1 ? " processor" : " processors");
  if (const int64_t memory = memory_bytes()) out += ", " + bytes_text(memory);
  return out;
}

std::string build_text() {
  const std::string library = product_library();
  return "GCC " __VERSION__ + (library.empty() ? "" : ", " + library);
}

}  // namespace cinta::train
