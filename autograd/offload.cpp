// Copies of whole storages, made once however many saved tensors share them.
#include "cinta/autograd/offload.h"

#include <map>

#include "cinta/core/context.h"

namespace cinta::autograd {
namespace {

/// One storage's bytes in the other memory, and the storage they were last brought back to.
struct Copy {
  Tensor bytes;
  Device device;
  std::weak_ptr<Storage> back;

  std::shared_ptr<Storage> bring_back() {
    std::shared_ptr<Storage> storage = back.lock();
    if (storage) return storage;
    storage = std::make_shared<Storage>(bytes.bytes(), device);
    copy_bytes(Tensor(storage, bytes.shape(), bytes.strides(), 0, Dtype::u8), bytes);
    storage->stays = true;
    back = storage;
    return storage;
  }
};

/// A saved tensor: a layout over a copy.
struct CopyHole : Hole {
  std::shared_ptr<Copy> copy;
  Shape shape, strides;
  int64_t offset = 0;
  Dtype dtype = Dtype::f32;
  Tensor fill(int, Where) override { return {copy->bring_back(), shape, strides, offset, dtype}; }
};

class Offload : public Keeper {
 public:
  Offload(Device to, int64_t smallest) : to_(to), smallest_(smallest) {}

  std::pair<std::shared_ptr<Hole>, int> keep(const Tensor& tensor) override {
    if (tensor.bytes() < smallest_ || tensor.device() == to_) return {};
    auto hole = std::make_shared<CopyHole>();
    hole->copy = copy_of(tensor.storage());
    hole->shape = tensor.shape();
    hole->strides = tensor.strides();
    hole->offset = tensor.offset();
    hole->dtype = tensor.dtype();
    return {std::move(hole), 0};
  }

 private:
  struct Entry {
    std::weak_ptr<Storage> storage;
    uint32_t version;
    std::weak_ptr<Copy> copy;
  };

  std::shared_ptr<Copy> copy_of(const std::shared_ptr<Storage>& storage) {
    if (made_.size() >= tidied_at_) {
      std::erase_if(made_, [](const auto& known) { return known.second.copy.expired(); });
      tidied_at_ = std::max<size_t>(64, 2 * made_.size());
    }
    Entry& entry = made_[storage.get()];
    std::shared_ptr<Copy> copy = entry.copy.lock();
    if (copy && entry.storage.lock() == storage && entry.version == storage->version()) return copy;
    const Shape shape{storage->bytes()};
    copy = std::make_shared<Copy>(Copy{empty(shape, Dtype::u8, to_), storage->device(), {}});
    // A step that is planned has nothing to copy, only what the copy takes.
    if (copy->device.backend != meta.backend)
      copy_bytes(copy->bytes, Tensor(storage, shape, contiguous_strides(shape), 0, Dtype::u8));
    entry = {storage, storage->version(), copy};
    return copy;
  }

  Device to_;
  int64_t smallest_;
  std::map<const Storage*, Entry> made_;
  size_t tidied_at_ = 64;  ///< entries, at which those of copies that are gone are let go
};

}  // namespace

OffloadScope::OffloadScope(Device to, int64_t smallest_bytes, Where where)
    : keeper_(std::make_shared<Offload>(to, smallest_bytes)), before_(mode().keeper) {
  require<DeviceError>(to.backend != meta.backend, "offload", where, "a device with memory, given ", to);
  runtime_of(to);  // names the device when it is not built
  if (!before_) mode().keeper = keeper_.get();
}
OffloadScope::~OffloadScope() { mode().keeper = before_; }

}  // namespace cinta::autograd
