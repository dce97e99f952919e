// What every thread has one of, for as long as it runs, and after.
#pragma once
#include <utility>

namespace cinta {

/// This thread's T, made of `arguments` at first use. It goes when the thread ends; what runs later still on that
/// thread, as the destructor of a static object, is given another, which nobody frees.
template <class T, class... Arguments>
T& thread_own(Arguments&&... arguments) {
  static thread_local constinit T* own = nullptr;
  struct End {
    ~End() { delete std::exchange(own, nullptr); }
  };
  if (!own) [[unlikely]] {
    static thread_local const End end;
    (void)end;
    own = new T(std::forward<Arguments>(arguments)...);
  }
  return *own;
}

}  // namespace cinta
