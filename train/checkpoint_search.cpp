// Finding the newest whole checkpoint: candidates by name, then by what their manifest promises.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"
#include "cinta/train/checkpoint_directory.h"
#include "cinta/train/checkpoint_names.h"

namespace cinta::train {
namespace {

/// Compares a file with the manifest; what is wrong, or an empty string.
std::string file_fault(const std::string& path, uint64_t size, const std::string& crc32) {
  struct Descriptor {
    int number;
    ~Descriptor() {
      if (number >= 0) ::close(number);
    }
  };
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) return std::string("cannot be opened: ") + std::strerror(errno);
  struct stat status {};
  if (::fstat(file.number, &status) != 0 || !S_ISREG(status.st_mode)) return "is no regular file";
  if (uint64_t(status.st_size) != size) return join("found ", long(status.st_size), " bytes, expected ", size);
  std::vector<std::byte> chunk(1 << 20);
  uint32_t found = 0;
  for (;;) {
    const ssize_t count = ::read(file.number, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::string("reading failed: ") + std::strerror(errno);
    if (count == 0) break;
    found = data::crc32_of(std::span(chunk).first(size_t(count)), found);
  }
  return hex_of(found) == crc32 ? "" : join("found CRC-32 ", hex_of(found), ", expected ", crc32);
}

struct Candidate {
  std::string name;
  int64_t step;
  bool in_place;  ///< checkpoint-500, not .checkpoint-500.old-1
};

/// `checkpoint-<step>` with nothing behind the step, or `.checkpoint-<step><mark><process>`.
std::optional<Candidate> candidate(const std::string& name, const std::string& mark) {
  const std::string prefix = (mark.empty() ? "" : ".") + checkpoint_prefix;
  if (!name.starts_with(prefix)) return std::nullopt;
  const char* end = name.data() + name.size();
  int64_t step = 0;
  const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, step);
  if (error != std::errc() || step < 0) return std::nullopt;
  const std::string_view tail(rest, end);
  if (mark.empty() ? !tail.empty() : !tail.starts_with(mark)) return std::nullopt;
  return Candidate{name, step, mark.empty()};
}

}  // namespace

std::string checkpoint_fault(const std::string& path) {
  const std::string manifest_path = path + "/" + manifest_name;
  if (::access(manifest_path.c_str(), F_OK) != 0)
    return "has no " + manifest_name + ", so it was not written to its end";
  std::string text;
  nlohmann::json manifest;
  try {
    text = data::read_file(manifest_path, size_t{1} << 24);
    manifest = data::parse_json(text, "checkpoint", manifest_name);
  } catch (const FileError& error) {
    return join(manifest_name, " is damaged: ", error.text());
  }
  if (!text.ends_with('\n')) return manifest_name + " is damaged: its end is missing";
  const bool good = manifest.is_object() && manifest.value("version", nlohmann::json()) == 1 &&
                    manifest.contains("files") && manifest["files"].is_object();
  if (!good) return manifest_name + " is damaged: expected an object of version 1 with files";
  for (const auto& [name, file] : manifest["files"].items()) {
    const bool described = data::is_plain_name(name) && file.is_object() && file.contains("size") &&
                           file["size"].is_number_unsigned() && file.contains("crc32") && file["crc32"].is_string();
    if (!described) return manifest_name + " is damaged: file '" + name + "' needs a plain name, a size and a crc32";
    const auto fault = file_fault(path + "/" + name, file["size"].get<uint64_t>(), file["crc32"].get<std::string>());
    if (!fault.empty()) return name + ": " + fault;
  }
  for (const auto& name : data::names_in(path))  // what is read must have been promised
    if (name != manifest_name && (name.ends_with(".json") || name.ends_with(".safetensors")) &&
        !manifest["files"].contains(name))
      return name + ": " + manifest_name + " does not name it";
  return "";
}

CheckpointSearch newest_checkpoint(const std::string& directory, Where where) {
  CheckpointSearch result;
  std::vector<Candidate> candidates;
  for (const auto& name : data::names_in(directory, where)) {
    for (const auto& mark : {std::string(), data::replaced_mark})
      if (const auto found = candidate(name, mark)) candidates.push_back(*found);
    if (candidate(name, data::temporary_mark)) result.unfinished.push_back(name + ": was not written to its end");
  }
  std::ranges::sort(candidates, std::greater(), [](const auto& one) { return std::pair(one.step, one.in_place); });
  for (const auto& one : candidates) {
    const std::string path = directory + "/" + one.name;
    const std::string fault = checkpoint_fault(path);
    if (fault.empty()) {
      result.newest = {path, one.step};
      break;
    }
    result.skipped.push_back(one.name + ": " + fault);
    if (one.in_place && result.lost.empty()) result.lost = result.skipped.back();
  }
  return result;
}

}  // namespace cinta::train
