// A checkpoint directory: files, then the manifest that promises them.
#include "cinta/train/checkpoint_directory.h"

#include <nlohmann/json.hpp>

#include "cinta/train/checkpoint_names.h"

namespace cinta::train {
namespace {

std::string place_of_step(const std::string& directory, int64_t step, Where where) {
  require(step >= 0, "checkpoint", where, "found step ", step, ", expected 0 or more");
  return directory + "/" + checkpoint_prefix + std::to_string(step);
}

}  // namespace

CheckpointWriter::CheckpointWriter(const std::string& directory, int64_t step, Where where)
    : path_(place_of_step(directory, step, where)), files_(path_, where) {}

std::string CheckpointWriter::finish(Where where) {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& [name, written] : files_.written())
    files[name] = {{"size", written.size}, {"crc32", hex_of(written.crc32)}};
  const std::string text = nlohmann::json{{"version", 1}, {"files", files}}.dump(1) + "\n";
  files_.add(manifest_name, where).write_text(text);
  files_.commit(where);
  return path_;
}

}  // namespace cinta::train
