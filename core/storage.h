// A range of device memory, its version, and who wrote it last. A range may be its own allocation or a slice of another
// storage (a parameter in a flat buffer), and it may move: every tensor that shares it follows.
#pragma once
#include <cstdint>
#include <memory>

#include "cinta/core/device.h"
#include "cinta/core/dtype.h"
#include "cinta/core/memory.h"

namespace cinta {

class Pool;
class Storage;

/// A copy of a storage's numbers in a narrower type. It is up to date iff `version` is the storage's.
struct Shadow {
  std::shared_ptr<Storage> storage;
  Dtype dtype = Dtype::bf16;
  uint32_t version = 0;
  /// A weight's is renewed when that was written; an op makes a result's for whoever reads that next, and a gradient's
  /// for the one op that passes it on.
  enum class Of : uint8_t { weight, result, gradient } of = Of::weight;
};

class Storage {
 public:
  /// New memory from the current rank's pool.
  Storage(int64_t bytes, Device device);
  /// `bytes` of `parent` from byte `offset` on, with a version of its own.
  Storage(std::shared_ptr<Storage> parent, int64_t offset, int64_t bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  int64_t bytes() const { return block_.bytes; }
  Device device() const { return device_; }
  /// Whether this range is part of another storage; else `pool` is where it was allocated.
  bool is_slice() const { return parent_ != nullptr; }
  const Pool* pool() const { return pool_.get(); }

  /// Moves this range into `parent` (its old memory is given back; the caller has copied what it wants to keep).
  void rebind(std::shared_ptr<Storage> parent, int64_t offset);

  /// How often this range was overwritten, and by which op: a tensor saved for backward compares them.
  uint32_t version() const { return version_; }
  const char* last_writer() const {
    const char* writer = block_.last_writer();
    return writer ? writer : "nothing";
  }
  void mark_written(const char* writer) {
    ++version_;
    block_.set_writer(writer);
  }
  /// Its first numbers are those of this op.
  void mark_made(const char* op) {
    if (!block_.last_writer()) block_.set_writer(op);
  }

  Shadow shadow;       ///< for whoever reads these numbers in a narrower type again and again
  bool stays = false;  ///< somebody who has no handle comes back to these numbers: no gradient takes their place

 private:
  void give_back() noexcept;
  void* data_ = nullptr;
  Device device_;
  uint32_t version_ = 0;
  LiveBlock block_;
  std::shared_ptr<Pool> pool_;       // set iff this range is its own allocation
  std::shared_ptr<Storage> parent_;  // set iff it is a slice
};

}  // namespace cinta
