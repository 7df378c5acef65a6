// Memory that is kept: blocks are 64-byte aligned, come from size classes, go back to a pool
// instead of the kernel, and sit on huge pages (madvise) from 2 MiB on. A fresh page costs more
// than the arithmetic on it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hlo/size_arithmetic.h"

namespace cpu {

// Of every buffer that a program uses, in bytes.
inline constexpr int64_t kAlignment = 64;
constexpr int64_t AlignedSize(int64_t bytes) { return hlo::RoundUp(bytes, kAlignment); }

// Owns one block; returns it to the pool.
class Block {
 public:
  Block() = default;
  // Contents undefined. Throws hlo::Error(kResourceExhausted) with the sizes when the system, the
  // limit set by TORCH_XLA_MEMORY_LIMIT (bytes), or else what the machine and the process's cgroups
  // have refuses.
  explicit Block(size_t bytes);
  ~Block();
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }  // as asked for

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  size_t capacity_ = 0;
};

// Somebody else's memory, counted as in use as long as this lives.
class Reservation {
 public:
  // Throws as Block does.
  explicit Reservation(size_t bytes);
  ~Reservation();
  Reservation(const Reservation&) = delete;

 private:
  size_t bytes_;
};

struct MemoryStatistics {
  int64_t bytes_in_use = 0, peak_bytes_in_use = 0, bytes_pooled = 0, bytes_limit = 0;
  int64_t allocations = 0, largest_allocation = 0;
};
MemoryStatistics GetMemoryStatistics();
// From now on the peak is counted from what is in use.
void ResetPeakMemory();
// Gives pooled blocks back to the system.
void TrimMemory();

}  // namespace cpu
