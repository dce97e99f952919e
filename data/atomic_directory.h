// A directory that appears as a whole or not at all, as data/atomic_file.h does it for one file.
#pragma once
#include <memory>
#include <string>

#include "cinta/data/atomic_file.h"

namespace cinta::data {

/// Writes `.<name>.tmp-<process>` beside `path`, file after file. commit() puts it in the place of `path`, whatever
/// stood there before; without commit, as after an exception, it is removed and `path` is what it was.
class AtomicDirectory {
 public:
  explicit AtomicDirectory(const std::string& path, Where where = Where::current());
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  /// Begins the next file, which `name` (no directory in it) names; its predecessor is complete then.
  ByteSink& add(const std::string& name, Where where = Where::current());
  /// Returns once the directory is in its place and on the disk.
  void commit(Where where = Where::current());

 private:
  void finish_file();

  std::string path_, temporary_;
  std::unique_ptr<OutputFile> file_;
};

}  // namespace cinta::data
