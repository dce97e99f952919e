// A free list for each 64 bytes of size, on each thread.
#include "cinta/core/small_blocks.h"

#include <array>
#include <new>
#include <utility>

namespace cinta {
namespace {

struct Link {
  Link* next;
};
constexpr size_t step = 64, lists = 32;  // sizes up to 2 KiB; larger ones go to operator new

// Without destructors, so that reading them needs no check whether they exist yet.
constinit thread_local std::array<Link*, lists + 1> free_blocks{};
constinit thread_local bool closed = false;  // the thread is ending, or blocks are not to be kept

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool keeps = false;  // the sanitizer is to see every end of life
#else
constexpr bool keeps = true;
#endif

/// Frees a thread's blocks at its end.
struct Closer {
  ~Closer() {
    closed = true;
    for (Link*& head : free_blocks)
      while (head) ::operator delete(std::exchange(head, head->next));
  }
};
void close_at_end_of_thread() {
  thread_local Closer closer;
  [[maybe_unused]] const Closer* used = &closer;
}

size_t list_of(size_t bytes) { return (bytes + step - 1) / step; }

}  // namespace

void* take_small_block(size_t bytes) {
  const size_t list = list_of(bytes);
  if (list > lists) return ::operator new(bytes);
  Link*& head = free_blocks[list];
  if (!head) return ::operator new(list* step);
  return std::exchange(head, head->next);
}

void give_small_block(void* block, size_t bytes) noexcept {
  const size_t list = list_of(bytes);
  if (!keeps || list > lists || closed) return ::operator delete(block);
  Link*& head = free_blocks[list];
  if (!head) close_at_end_of_thread();
  head = ::new (block) Link{head};
}

}  // namespace cinta
