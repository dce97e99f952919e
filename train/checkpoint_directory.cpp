// Writing a checkpoint directory under a temporary name and putting it in its place.
#include "cinta/train/checkpoint_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cinta/data/atomic_file.h"
#include "cinta/train/checkpoint_names.h"

namespace cinta::train {
namespace {

namespace fs = std::filesystem;
using data::throw_file_error;

void remove_matching(const std::string& directory, const std::string& prefix, Where where) {
  for (const auto& name : names_in(directory, where)) {
    std::error_code error;
    if (name.starts_with(prefix)) fs::remove_all(directory + "/" + name, error);
    if (error)
      throw_file_error(directory + "/" + name, "left by an earlier run, cannot be removed", error.value(), where);
  }
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string directory, int64_t step, Where where)
    : directory_(std::move(directory)), name_(checkpoint_prefix + std::to_string(step)) {
  require(step >= 0, "checkpoint", where, "found step ", step, ", expected 0 or more");
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) throw_file_error(directory_, "cannot be created", error.value(), where);
  const std::string process = std::to_string(::getpid());
  temporary_ = directory_ + "/." + name_ + temporary_mark + process;
  remove_matching(directory_, "." + name_ + temporary_mark, where);
  if (::mkdir(temporary_.c_str(), 0777) != 0) throw_file_error(temporary_, "cannot be created", errno, where);
}

CheckpointWriter::~CheckpointWriter() {
  if (finished_) return;
  file_.reset();
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

data::ByteSink& CheckpointWriter::add(const std::string& name, Where where) {
  require(is_plain_name(name) && name != manifest_name, "checkpoint", where, "'", name,
          "' cannot be the name of a file in a checkpoint");
  close_file();
  require(written_.emplace(name, Written{}).second, "checkpoint", where, "the file '", name, "' is added twice");
  file_ = std::make_unique<data::OutputFile>(temporary_ + "/" + name, 0, where);
  return *file_;
}

void CheckpointWriter::close_file() {
  if (!file_) return;
  file_->finish();
  written_[data::name_of_path(file_->path())] = {file_->size(), file_->crc32()};
  file_.reset();
}

void CheckpointWriter::write_manifest(Where where) {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& [name, written] : written_) files[name] = {{"size", written.size}, {"crc32", hex_of(written.crc32)}};
  const std::string text = nlohmann::json{{"version", 1}, {"files", files}}.dump(1) + "\n";
  data::OutputFile manifest(temporary_ + "/" + manifest_name, 0, where);
  manifest.write(text.data(), text.size());
  manifest.finish();
}

std::string CheckpointWriter::finish(Where where) {
  require(!finished_, "checkpoint", where, "the checkpoint is finished already");
  close_file();
  write_manifest(where);
  data::sync_directory(temporary_, where);
  replace(where);
  return directory_ + "/" + name_;
}

void CheckpointWriter::replace(Where where) {
  const std::string place = directory_ + "/" + name_;
  const std::string aside = directory_ + "/." + name_ + replaced_mark + std::to_string(::getpid());
  const bool exists = fs::exists(fs::symlink_status(place));
  if (!exists) {
    data::rename_path(temporary_, place, where);
  } else if (data::exchange_paths(temporary_, place, where)) {
    // the old checkpoint has the temporary name now, and goes only once the new one's name is on the disk
    finished_ = true;
    data::sync_directory(directory_, where);
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
  } else {
    // between the two renames the old one is found by newest_checkpoint() under its other name
    data::rename_path(place, aside, where);
    data::rename_path(temporary_, place, where);
  }
  finished_ = true;
  data::sync_directory(directory_, where);
  remove_matching(directory_, "." + name_ + replaced_mark, where);
}

}  // namespace cinta::train
