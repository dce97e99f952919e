// Taking and giving back the memory of a storage.
#include "cinta/core/storage.h"

#include "cinta/core/allocator.h"
#include "cinta/core/context.h"

namespace cinta {

Storage::Storage(int64_t bytes, Device device)
    : device_(device), block_{.bytes = bytes, .category = current_category()}, pool_(context().pool(device)) {
  data_ = pool_->allocate(block_);
}

Storage::Storage(std::shared_ptr<Storage> parent, int64_t offset, int64_t bytes)
    : data_(static_cast<char*>(parent->data()) + offset),
      device_(parent->device()),
      block_{.bytes = bytes},
      parent_(std::move(parent)) {}

Storage::~Storage() { give_back(); }

void Storage::rebind(std::shared_ptr<Storage> parent, int64_t offset) {
  give_back();
  data_ = static_cast<char*>(parent->data()) + offset;
  device_ = parent->device();
  parent_ = std::move(parent);
}

void Storage::give_back() noexcept {
  if (pool_) pool_->release(data_, block_);
  pool_.reset();
  parent_.reset();
}

}  // namespace cinta
