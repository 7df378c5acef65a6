#include "process/small_memory.h"

#include <array>
#include <memory>
#include <new>
#include <utility>

#include "process/sanitizers.h"

namespace process {
namespace {

// Sanitizers see no use of freed memory that is kept here.
constexpr bool kKeeps = !kKeepsFreedMemory;

constexpr size_t kStep = 32, kLargest = 512;
// Kept of one size by one thread; a step of a thousand nodes finds what the one before it freed.
constexpr size_t kKeptBytes = size_t{128} << 10;

struct Piece {
  Piece* next;
};

// Pieces of one size, the last freed first.
struct Pieces {
  Piece* first = nullptr;
  size_t count = 0;
};

using Kept = std::array<Pieces, kLargest / kStep>;

// A thread's pieces, from the first one that it frees until its end. A pointer, which is read
// without the call that a library's thread-local variables take else: little room is left for such.
[[gnu::tls_model("initial-exec")]] constinit thread_local Kept* kept = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool is_at_end = false;

struct AtEnd {
  ~AtEnd() {
    is_at_end = true;  // other objects of the thread may still free theirs
    const std::unique_ptr<Kept> last(std::exchange(kept, nullptr));
    for (Pieces& pieces : *last) {
      while (pieces.first != nullptr) {
        Piece* const piece = pieces.first;
        pieces.first = piece->next;
        ::operator delete(piece);
      }
    }
  }
};

size_t ClassOf(size_t bytes) { return (bytes - 1) / kStep; }

// Whether there is room to keep pieces in.
[[gnu::noinline]] bool BeginKeeping() {
  if (is_at_end) return false;
  kept = new (std::nothrow) Kept;
  if (kept == nullptr) return false;
  thread_local AtEnd at_end;
  (void)at_end;
  return true;
}

}  // namespace

void* AllocateSmall(size_t bytes) {
  if (!kKeeps || bytes == 0 || bytes > kLargest) return ::operator new(bytes);
  const size_t size_class = ClassOf(bytes);
  if (kept == nullptr || (*kept)[size_class].first == nullptr) {
    return ::operator new((size_class + 1) * kStep);
  }
  Pieces& pieces = (*kept)[size_class];
  Piece* const piece = pieces.first;
  pieces.first = piece->next;
  --pieces.count;
  return piece;
}

void FreeSmall(void* memory, size_t bytes) noexcept {
  if (memory == nullptr) return;
  if (!kKeeps || bytes == 0 || bytes > kLargest) return ::operator delete(memory);
  const size_t size_class = ClassOf(bytes);
  if (kept == nullptr && !BeginKeeping()) [[unlikely]]
    return ::operator delete(memory);
  Pieces& pieces = (*kept)[size_class];
  if (pieces.count >= kKeptBytes / ((size_class + 1) * kStep)) return ::operator delete(memory);
  pieces.first = new (memory) Piece{pieces.first};
  ++pieces.count;
}

}  // namespace process
