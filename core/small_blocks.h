// Memory for the small objects that every step makes and drops by the thousand: storages, slots, nodes. Blocks are kept
// by size and thread for the next step: malloc's own cache holds seven of a size, a tape hundreds.
#pragma once
#include <cstddef>
#include <memory>

namespace cinta {

/// At least `bytes`, aligned as operator new aligns.
void* take_small_block(size_t bytes);
/// Gives back a block, on any thread, with the size it was taken with.
void give_small_block(void* block, size_t bytes) noexcept;

template <class T>
struct SmallBlockAllocator {
  using value_type = T;
  SmallBlockAllocator() = default;
  template <class U>
  SmallBlockAllocator(const SmallBlockAllocator<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(take_small_block(count * sizeof(T))); }
  void deallocate(T* block, size_t count) noexcept { give_small_block(block, count * sizeof(T)); }
  bool operator==(const SmallBlockAllocator&) const = default;
};

/// std::make_shared in a small block.
template <class T, class... Args>
std::shared_ptr<T> make_small(Args&&... args) {
  return std::allocate_shared<T>(SmallBlockAllocator<T>(), std::forward<Args>(args)...);
}

}  // namespace cinta
