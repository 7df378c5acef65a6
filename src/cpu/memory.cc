#include "cpu/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "hlo/error.h"
#include "process/fork.h"
#include "process/limits.h"

namespace cpu {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLargest = size_t{1} << 56;
constexpr int kStepsPerDoubling = 8;  // at most an eighth of a block is lost to rounding
constexpr int kNumClasses = 64 * kStepsPerDoubling;
// Blocks below this many bytes in total are kept whatever else happens.
constexpr size_t kAlwaysPooled = size_t{64} << 20;

// The class's capacity is the smallest number >= bytes that is a multiple of an eighth of the power
// of two below it (and of the alignment).
size_t RoundToClass(size_t bytes) {
  constexpr size_t kLeast = kAlignment;
  if (bytes <= kLeast) return kLeast;
  return hlo::RoundUp(bytes, std::max(kLeast, std::bit_floor(bytes - 1) / kStepsPerDoubling));
}

int ClassIndex(size_t capacity) {
  int log = std::bit_width(capacity) - 1;
  size_t step = (size_t{1} << log) / kStepsPerDoubling;
  return log * kStepsPerDoubling + (step == 0 ? 0 : static_cast<int>(capacity / step) - 8);
}

int64_t LimitFromEnvironment() {
  const char* text = std::getenv("TORCH_XLA_MEMORY_LIMIT");
  long long limit = text == nullptr ? 0 : std::atoll(text);
  return limit > 0 ? limit : 0;
}

void* MapHuge(size_t capacity) {
  // Mapped with room to align, then trimmed: huge pages need their own alignment.
  size_t padded = capacity + kHugePage;
  void* mapped = mmap(nullptr, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto begin = reinterpret_cast<uintptr_t>(mapped);
  uintptr_t aligned = hlo::RoundUp(begin, kHugePage);
  if (aligned > begin) munmap(mapped, aligned - begin);
  if (begin + padded > aligned + capacity) {
    munmap(reinterpret_cast<void*>(aligned + capacity), begin + padded - aligned - capacity);
  }
  madvise(reinterpret_cast<void*>(aligned), capacity, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(aligned);
}

size_t SystemSize(size_t capacity) {
  // Mappings end at page boundaries.
  return capacity < kHugePage ? capacity : hlo::RoundUp(capacity, 4096);
}

void* FromSystem(size_t capacity) {
  return capacity < kHugePage ? std::aligned_alloc(kAlignment, capacity)
                              : MapHuge(SystemSize(capacity));
}

void ToSystem(void* data, size_t capacity) {
  if (capacity < kHugePage) {
    std::free(data);
  } else {
    munmap(data, SystemSize(capacity));
  }
}

class Pool {
 public:
  static Pool& Get() {
    static Pool* pool = new Pool;  // never destroyed: blocks outlive static objects
    return *pool;
  }

  void* Allocate(size_t bytes, size_t capacity) {
    std::lock_guard lock(mutex_);
    CheckLimit(bytes, capacity);
    std::vector<void*>& free_list = free_[ClassIndex(capacity)];
    void* data = nullptr;
    if (!free_list.empty()) {
      data = free_list.back();
      free_list.pop_back();
      pooled_ -= capacity;
    } else {
      data = Fresh(bytes, capacity);
    }
    Count(bytes, capacity);
    return data;
  }

  void Free(void* data, size_t capacity) {
    std::lock_guard lock(mutex_);
    in_use_ -= capacity;
    pooled_ += capacity;
    try {
      free_[ClassIndex(capacity)].push_back(data);
    } catch (const std::bad_alloc&) {
      pooled_ -= capacity;
      ToSystem(data, capacity);
    }
  }

  void Reserve(size_t bytes) {
    std::lock_guard lock(mutex_);
    CheckLimit(bytes, bytes);
    Count(bytes, bytes);
  }

  void Unreserve(size_t bytes) {
    std::lock_guard lock(mutex_);
    in_use_ -= bytes;
  }

  void Trim() {
    std::lock_guard lock(mutex_);
    ReleasePooled(pooled_);
  }

  void ResetPeak() {
    std::lock_guard lock(mutex_);
    peak_ = in_use_;
  }

  MemoryStatistics Statistics() {
    std::lock_guard lock(mutex_);
    MemoryStatistics result;
    result.bytes_in_use = in_use_;
    result.peak_bytes_in_use = peak_;
    result.bytes_pooled = pooled_;
    result.bytes_limit = limit_ > 0 ? limit_ : physical_;
    result.allocations = allocations_;
    result.largest_allocation = largest_;
    return result;
  }

 private:
  Pool() {
    limit_ = LimitFromEnvironment();
    if (limit_ == 0) physical_ = static_cast<size_t>(process::MemoryLimit());
  }

  [[noreturn]] void ThrowExhausted(size_t bytes, const std::string& why) const {
    throw hlo::Error(hlo::ErrorCode::kResourceExhausted,
                     "out of memory allocating " + std::to_string(bytes) + " bytes: " + why + " (" +
                         std::to_string(in_use_) + " bytes in use, peak " + std::to_string(peak_) +
                         ")");
  }

  void CheckLimit(size_t bytes, size_t capacity) const {
    if (limit_ > 0 && in_use_ + capacity > limit_) {
      ThrowExhausted(bytes, "TORCH_XLA_MEMORY_LIMIT is " + std::to_string(limit_) + " bytes");
    }
    // The kernel would promise the memory and kill the process when it is touched.
    if (physical_ > 0 && in_use_ + capacity > physical_) {
      ThrowExhausted(bytes, "this process may use " + std::to_string(physical_) +
                                " bytes of the machine's memory");
    }
  }

  // The rest of the process, and others in its cgroup, use memory too. What they use is at least
  // what the kernel counts beyond our own, of which it counts only what has been written to.
  void CheckRoom(size_t bytes, size_t capacity) {
    constexpr size_t kWorthAsking = size_t{32} << 20;  // bytes
    if (capacity < kWorthAsking) return;
    for (const process::Cgroups::Memory& memory : cgroups_.memory()) {
      const auto others = [&] {
        const auto own = static_cast<int64_t>(in_use_ + pooled_);
        return static_cast<size_t>(std::max<int64_t>(memory.used - own, 0));
      };
      const auto limit = static_cast<size_t>(memory.limit);
      if (in_use_ + pooled_ + capacity + others() > limit) ReleasePooled(pooled_);
      if (in_use_ + capacity + others() <= limit) continue;
      ThrowExhausted(bytes, "the cgroup may use " + std::to_string(limit) + " bytes, of which " +
                                std::to_string(others()) + " are other memory's");
    }
  }

  void Count(size_t bytes, size_t capacity) {
    in_use_ += capacity;
    peak_ = std::max(peak_, in_use_);
    ++allocations_;
    largest_ = std::max(largest_, bytes);
  }

  void* Fresh(size_t bytes, size_t capacity) {
    CheckRoom(bytes, capacity);
    // Pooled blocks of other sizes give way before the footprint grows past what was in use at
    // once.
    size_t footprint = in_use_ + pooled_ + capacity;
    size_t allowed = std::max(peak_, in_use_ + capacity) + std::max(kAlwaysPooled, peak_ / 16);
    if (limit_ > 0) allowed = std::min(allowed, limit_);
    if (footprint > allowed) ReleasePooled(footprint - allowed);
    void* data = FromSystem(capacity);
    if (data == nullptr) {
      ReleasePooled(pooled_);
      data = FromSystem(capacity);
    }
    if (data == nullptr) ThrowExhausted(bytes, "the system refused");
    return data;
  }

  // Largest blocks first: the fewest calls for the most memory.
  void ReleasePooled(size_t bytes) {
    size_t released = 0;
    for (int i = kNumClasses - 1; i >= 0 && released < bytes; --i) {
      size_t step = (size_t{1} << (i / kStepsPerDoubling)) / kStepsPerDoubling;
      size_t capacity = (size_t{1} << (i / kStepsPerDoubling)) + step * (i % kStepsPerDoubling);
      while (!free_[i].empty() && released < bytes) {
        ToSystem(free_[i].back(), capacity);
        free_[i].pop_back();
        released += capacity;
        pooled_ -= capacity;
      }
    }
  }

  process::Mutex mutex_;
  std::array<std::vector<void*>, kNumClasses> free_;
  size_t in_use_ = 0, peak_ = 0, pooled_ = 0, largest_ = 0, limit_ = 0, physical_ = 0;
  int64_t allocations_ = 0;
  const process::Cgroups cgroups_;
};

}  // namespace

Block::Block(size_t bytes) : bytes_(bytes) {
  if (bytes > kLargest) {
    throw hlo::Error(hlo::ErrorCode::kResourceExhausted,
                     "out of memory allocating " + std::to_string(bytes) + " bytes");
  }
  capacity_ = RoundToClass(bytes);
  data_ = Pool::Get().Allocate(bytes, capacity_);
}

Block::~Block() {
  if (data_ != nullptr) Pool::Get().Free(data_, capacity_);
}

Block::Block(Block&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      capacity_(std::exchange(other.capacity_, 0)) {}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

Reservation::Reservation(size_t bytes) : bytes_(bytes) { Pool::Get().Reserve(bytes); }

Reservation::~Reservation() { Pool::Get().Unreserve(bytes_); }

MemoryStatistics GetMemoryStatistics() { return Pool::Get().Statistics(); }
void ResetPeakMemory() { Pool::Get().ResetPeak(); }

void TrimMemory() { Pool::Get().Trim(); }

}  // namespace cpu
