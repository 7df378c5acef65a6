// Memory for the objects that recording and running a step make and drop by the thousand, all of a
// few small sizes. Each thread keeps what it has freed for what it makes next: the C library's own
// lists are as quick, but hold no more than seven pieces of a size.
#pragma once

#include <cstddef>

namespace process {

// As ::operator new; `bytes` are given again to free it. Any thread may free it.
void* AllocateSmall(size_t bytes);
void FreeSmall(void* memory, size_t bytes) noexcept;

// Of a class whose objects lie there. Not for classes that ask for more than the usual alignment.
class SmallObject {
 public:
  static void* operator new(size_t bytes) { return AllocateSmall(bytes); }
  static void* operator new(size_t, void* place) noexcept { return place; }
  static void operator delete(void* memory, size_t bytes) noexcept { FreeSmall(memory, bytes); }
};

// For std::allocate_shared.
template <typename T>
struct SmallAllocator {
  using value_type = T;
  SmallAllocator() = default;
  template <typename U>
  SmallAllocator(const SmallAllocator<U>&) {}  // NOLINT(runtime/explicit)
  T* allocate(size_t count) {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    return static_cast<T*>(AllocateSmall(count * sizeof(T)));
  }
  void deallocate(T* memory, size_t count) noexcept { FreeSmall(memory, count * sizeof(T)); }
  bool operator==(const SmallAllocator&) const = default;
};

}  // namespace process
