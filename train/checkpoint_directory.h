// A checkpoint is a directory that appears as a whole: files and a manifest are written under a hidden temporary name,
// fsynced, and the directory is renamed. After a crash at any moment the newest whole checkpoint is found by its
// manifest (the size and CRC-32 of every file, written last; zlib's CRC-32, so that gzip, Python and others can check a
// file).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cinta/data/atomic_directory.h"

namespace cinta::train {

/// Writes `<directory>/checkpoint-<step>`.
class CheckpointWriter {
 public:
  CheckpointWriter(const std::string& directory, int64_t step, Where where = Where::current());

  /// Begins the next file; its predecessor is complete then. `name` has no directory part.
  data::ByteSink& add(const std::string& name, Where where = Where::current()) { return files_.add(name, where); }
  /// Writes the manifest and puts the directory in its place, also over an older one of the same step. Returns its
  /// path. Once.
  std::string finish(Where where = Where::current());

 private:
  std::string path_;
  data::AtomicDirectory files_;
};

/// What is wrong with the checkpoint directory `path`, or an empty string: every file of its manifest is there, has the
/// size and the CRC-32.
std::string checkpoint_fault(const std::string& path);

struct FoundCheckpoint {
  std::string path;
  int64_t step;
};
struct CheckpointSearch {
  std::optional<FoundCheckpoint> newest;  ///< the whole checkpoint of the highest step
  std::vector<std::string> skipped;       ///< one line for each newer one: its name and its fault
  std::string lost;                       ///< the first of them that is no copy making room for a new one, or empty
  std::vector<std::string> unfinished;    ///< the same for each that an interrupted run was writing
};
/// Looks through `directory`; a directory that does not exist holds none. Throws FileError if it cannot be read.
CheckpointSearch newest_checkpoint(const std::string& directory, Where where = Where::current());

}  // namespace cinta::train
