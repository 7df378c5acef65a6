// Packs buffers with known lifetimes into one arena: allocate and free in the program's order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "cpu/memory.h"

namespace cpu {

class ArenaPlanner {
 public:
  // Best fit among the gaps, else at the end.
  int64_t Allocate(int64_t bytes);
  void Free(int64_t offset);
  int64_t total_bytes() const { return total_; }

 private:
  static int64_t Rounded(int64_t bytes) { return AlignedSize(std::max<int64_t>(bytes, 1)); }
  std::map<int64_t, int64_t> gaps_;  // offset to size
  std::map<int64_t, int64_t> used_;
  int64_t end_ = 0;
  int64_t total_ = 0;
};

}  // namespace cpu
