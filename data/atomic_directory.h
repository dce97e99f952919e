// A directory that appears as a whole or not at all, as data/atomic_file.h does it for one file.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cinta/data/atomic_file.h"

namespace cinta::data {

inline const std::string temporary_mark = ".tmp-";  ///< `.<name>.tmp-<process>`: being written
inline const std::string replaced_mark = ".old-";   ///< `.<name>.old-<process>`: making room for a new one

/// Writes `.<name>.tmp-<process>` beside `path`, file after file. commit() puts it in the place of `path`, whatever
/// stood there before; without commit, as after an exception, it is removed and `path` is what it was.
class AtomicDirectory {
 public:
  /// Removes what a killed process left of the same name.
  explicit AtomicDirectory(const std::string& path, Where where = Where::current());
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  /// Begins the next file, which `name` (no directory in it) names; its predecessor is complete then. Throws ValueError
  /// for another kind of name and for one that was added before.
  ByteSink& add(const std::string& name, Where where = Where::current());

  struct Written {
    uint64_t size;
    uint32_t crc32;
  };
  /// The files added, the last one completed.
  const std::map<std::string, Written>& written();

  /// Returns once the directory is in its place and on the disk. Where the file system cannot swap two names, what
  /// stood there is for a moment called `.<name>.old-<process>`.
  void commit(Where where = Where::current());

 private:
  void finish_file();

  std::string path_, temporary_;
  std::shared_ptr<OutputFile> file_;
  std::map<std::string, Written> written_;
  bool in_place_ = false;
};

/// True for the name of a file in a directory: not empty, no slash, not "." or "..".
bool is_plain_name(std::string_view name);

/// The names in a directory, sorted; none where it does not exist. Throws FileError if it cannot be read.
std::vector<std::string> names_in(const std::string& directory, Where where = Where::current());

}  // namespace cinta::data
