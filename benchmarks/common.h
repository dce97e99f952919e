// What the benchmarks share: options, processor time, memory of the process, the machine in words, JSON results.
#pragma once
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "cinta/backends/threads.h"
#include "cinta/core/context.h"
#include "cinta/train/machine.h"
#include "cinta/train/metrics.h"
#include "cinta/train/readable.h"
#include "cinta/train/timing.h"

namespace benchmark {

using Json = nlohmann::ordered_json;
using cinta::train::seconds;
using cinta::train::Statistics;
using cinta::train::time_calls;

/// `--name value` pairs; a name without a value is "1". Names that no get() asked for are an error at finish().
class Options {
 public:
  Options(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string name = argv[i];
      cinta::require(name.starts_with("--"), "benchmark", cinta::Where(), "options start with --, given ",
                     name.c_str());
      const bool has_value = i + 1 < argc && std::string(argv[i + 1]).rfind("--", 0) != 0;
      values_[name.substr(2)] = has_value ? argv[++i] : "1";
    }
  }
  std::string get(const std::string& name, const std::string& otherwise) {
    asked_[name] = otherwise;
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  int64_t get(const std::string& name, int64_t otherwise) {
    return number(name, std::to_string(otherwise),
                  [](const std::string& word, size_t* end) { return static_cast<int64_t>(std::stoll(word, end)); });
  }
  double get(const std::string& name, double otherwise) {
    return number(name, std::to_string(otherwise),
                  [](const std::string& word, size_t* end) { return std::stod(word, end); });
  }
  /// get(), from `least` to a thousand million.
  int64_t count(const std::string& name, int64_t otherwise, int64_t least = 1) {
    const int64_t value = get(name, otherwise);
    cinta::require(value >= least && value <= 1'000'000'000, "benchmark", cinta::Where(), "--", name.c_str(), " is ",
                   least, " to 1000000000, given ", value);
    return value;
  }
  /// Throws ValueError for an option that nobody knows, listing those there are.
  void finish() const {
    std::string known;
    for (const auto& [name, otherwise] : asked_) known += " --" + name + " (" + otherwise + ")";
    for (const auto& [name, value] : values_)
      cinta::require(asked_.contains(name), "benchmark", cinta::Where(), "unknown option --", name.c_str(),
                     "; there are", known.c_str());
  }

 private:
  /// What `read(word, end)` makes of a whole word.
  template <class Read>
  auto number(const std::string& name, const std::string& otherwise, Read read) -> decltype(read(name, nullptr)) {
    const std::string word = get(name, otherwise);
    size_t end = 0;
    try {
      const auto value = read(word, &end);
      if (end == word.size()) return value;
    } catch (const std::logic_error&) {  // no number, or none that fits
    }
    throw cinta::ValueError(cinta::join("[benchmark] --", name.c_str(), " is a number, given ", word.c_str()));
  }
  std::map<std::string, std::string> values_, asked_;
};

/// Processor time of all threads of this process.
inline double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

inline Json json_of(const Statistics& statistics) {
  return {{"best", statistics.best}, {"median", statistics.median}, {"spread", statistics.spread}};
}

/// The field `key` of a text file of "key: value" lines under /proc, "" where there is none.
inline std::string proc_field(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t colon = line.find(':');
    return colon == std::string::npos ? ""
                                      : line.substr(std::min(line.size(), line.find_first_not_of(" \t", colon + 1)));
  }
  return "";
}
/// Largest resident memory of this process since the last reset, in bytes.
inline int64_t peak_resident_bytes() { return std::atoll(proc_field("/proc/self/status", "VmHWM").c_str()) * 1024; }
inline void reset_peak_resident() { std::ofstream("/proc/self/clear_refs") << "5"; }

/// Today, as 2024-06-07.
inline std::string date() { return cinta::train::local_time(cinta::train::seconds_since_1970()).substr(0, 10); }

/// The day, the processor, what it can do, and what built this program.
inline Json machine() {
  const std::string flags = " " + proc_field("/proc/cpuinfo", "flags") + " ";
  auto can = [&](const char* flag) { return flags.find(std::string(" ") + flag + " ") != std::string::npos; };
  return {{"date", date()},
          {"processor", proc_field("/proc/cpuinfo", "model name")},
          {"processors", std::thread::hardware_concurrency()},
          {"threads", cinta::threads()},
          {"avx2", can("avx2")},
          {"avx512", can("avx512f")},
          {"avx512_bf16", can("avx512_bf16")},
          {"amx", can("amx_bf16")},
          {"runs_on", cinta::train::machine_text()},  // with the instruction set that is used
          {"memory_bytes", static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE)},
          {"build", cinta::train::build_text()}};
}

/// Bytes of this rank's pool on the CPU, by category: "live" or "peak".
inline Json memory(bool peak) {
  const cinta::MemoryStatistics statistics = cinta::memory_statistics(cinta::cpu);
  Json out;
  for (int i = 0; i < cinta::category_count; ++i)
    out[std::string(cinta::name_of(static_cast<cinta::Category>(i)))] =
        (peak ? statistics.peak : statistics.live)[static_cast<size_t>(i)];
  out["total"] = peak ? statistics.peak_total : statistics.live_total;
  return out;
}

/// Writes `result` to the file `path`; nothing for an empty path.
inline void write(const std::string& path, const Json& result) {
  if (!path.empty()) std::ofstream(path) << result.dump(2) << "\n";
}

/// Calls `program` and turns what it throws into a message and an exit status: 2 for bad input, 1 for our own fault.
template <class Program>
int guarded(Program&& program) {
  try {
    program();
    return 0;
  } catch (const cinta::InputError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace benchmark
