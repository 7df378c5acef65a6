// How the members of an exchange share its work.
#pragma once

#include <vector>

#include "cpu/collective/flat_array.h"
#include "cpu/collective/transport.h"

namespace cpu {

// Parts begin on their own cache lines, and so at whole elements.
inline constexpr int64_t kPartAlignment = 64;

// The part of [0, bytes) that member `i` of `count` takes care of.
struct Part {
  int64_t begin, end;
};
Part PartOf(int64_t bytes, int64_t count, int64_t i);

// Combines bytes [begin, end) of `own` with those of the other members, which are contiguous, in
// the members' order, into `target`. `sources[exchange.me]` is not used.
void ReduceWithOwn(const Exchange& exchange, hlo::ElementType type, const FlatArray& own,
                   int64_t begin, int64_t end, std::vector<const std::byte*> sources,
                   std::byte* target);

}  // namespace cpu
