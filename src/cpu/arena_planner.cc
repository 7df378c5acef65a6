#include "cpu/arena_planner.h"

#include <algorithm>

namespace cpu {

int64_t ArenaPlanner::Allocate(int64_t bytes) {
  bytes = Rounded(bytes);
  auto best = gaps_.end();
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    if (gap->second >= bytes && (best == gaps_.end() || gap->second < best->second)) best = gap;
  }
  int64_t offset = end_;
  if (best != gaps_.end()) {
    offset = best->first;
    const int64_t rest = best->second - bytes;
    gaps_.erase(best);
    if (rest > 0) gaps_[offset + bytes] = rest;
  } else {
    // A gap at the end is extended.
    if (!gaps_.empty() && gaps_.rbegin()->first + gaps_.rbegin()->second == end_) {
      offset = gaps_.rbegin()->first;
      gaps_.erase(offset);
    }
    end_ = offset + bytes;
  }
  used_[offset] = bytes;
  total_ = std::max(total_, end_);
  return offset;
}

void ArenaPlanner::Free(int64_t offset) {
  auto it = used_.find(offset);
  int64_t bytes = it->second;
  used_.erase(it);
  auto next = gaps_.lower_bound(offset);
  if (next != gaps_.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = gaps_.erase(next);
  }
  if (next != gaps_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += bytes;
      return;
    }
  }
  gaps_[offset] = bytes;
}

}  // namespace cpu
