#include "cpu/code_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "hlo/size_arithmetic.h"
#include "process/fork.h"
#include "process/free_list.h"

namespace cpu {
namespace {

constexpr size_t kSlabBytes = 2 << 20;
// Of a block: calls reach no further than 2 GB.
constexpr size_t kMostBytes = size_t{1} << 31;

struct Slab {
  uint8_t* data;
  size_t bytes;
  process::FreeList free;
};

// Below a NoFork. For ever: programs may outlive what is destroyed at the end of the process.
struct Slabs {
  process::Mutex mutex;
  std::list<Slab> all;

  static Slabs& Get() {
    static auto* const slabs = new Slabs;
    return *slabs;
  }
};

size_t PageBytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

bool Protect(uint8_t* data, size_t bytes, int protection) {
  return mprotect(data, bytes, protection) == 0;
}

// Pages of a slab that were used are as MakeExecutable has left them.
uint8_t* TakeFrom(Slab& slab, size_t bytes) {
  const std::optional<size_t> offset = slab.free.Take(bytes);
  if (!offset) return nullptr;
  uint8_t* const data = slab.data + *offset;
  if (!Protect(data, bytes, PROT_READ | PROT_WRITE)) {
    slab.free.Give(*offset, bytes);
    throw std::bad_alloc();
  }
  return data;
}

uint8_t* Take(Slabs& slabs, size_t bytes) {
  for (Slab& slab : slabs.all) {
    if (uint8_t* data = TakeFrom(slab, bytes)) return data;
  }
  const size_t slab_bytes = std::max(bytes, kSlabBytes);
  // Of a list of one slab, which is then moved: what follows cannot fail.
  std::list<Slab> made(1);
  Slab& slab = made.front();
  slab.free.Give(0, slab_bytes);
  void* const data = mmap(nullptr, slab_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                          /*fd=*/-1, /*offset=*/0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  slab.data = static_cast<uint8_t*>(data);
  slab.bytes = slab_bytes;
  slab.free.Take(bytes);
  slabs.all.splice(slabs.all.begin(), made);
  return slab.data;
}

// What cannot be noted for lack of memory stays unused.
void Give(Slabs& slabs, uint8_t* data, size_t bytes) noexcept try {
  const auto found = std::find_if(slabs.all.begin(), slabs.all.end(), [data](const Slab& slab) {
    return slab.data <= data && data < slab.data + slab.bytes;
  });
  found->free.Give(static_cast<size_t>(data - found->data), bytes);
  if (found->free.bytes() < found->bytes) return;
  munmap(found->data, found->bytes);
  slabs.all.erase(found);
} catch (const std::bad_alloc&) {
}

}  // namespace

CodeBlock::CodeBlock(size_t bytes) {
  if (bytes > kMostBytes) throw std::bad_alloc();
  bytes = hlo::RoundUp(std::max<size_t>(bytes, 1), PageBytes());
  Slabs& slabs = Slabs::Get();
  {
    std::lock_guard lock(slabs.mutex);
    data_ = Take(slabs, bytes);
  }
  bytes_ = bytes;
  std::memset(data_, 0, bytes);  // of what was there before nothing is left
}

CodeBlock::CodeBlock(CodeBlock&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

CodeBlock& CodeBlock::operator=(CodeBlock&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

CodeBlock::~CodeBlock() {
  if (data_ == nullptr) return;
  Slabs& slabs = Slabs::Get();
  std::lock_guard lock(slabs.mutex);
  Give(slabs, data_, bytes_);
}

bool CodeBlock::MakeExecutable() { return Protect(data_, bytes_, PROT_READ | PROT_EXEC); }

size_t CodeSlabs() {
  Slabs& slabs = Slabs::Get();
  std::lock_guard lock(slabs.mutex);
  return slabs.all.size();
}

}  // namespace cpu
