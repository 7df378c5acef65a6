#include "cpu/library/select_first.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "cpu/library/vector_clones.h"

namespace cpu {
namespace {

struct Candidate {
  uint64_t key;
  uint32_t position;

  bool operator<(const Candidate& other) const {
    return std::tie(key, position) < std::tie(other.key, other.position);
  }
};

// The first position from `from` on whose key is below the limit, or `count`. Most blocks have
// none, which is seen without a branch for each key.
CPU_VECTOR_CLONES int64_t NextBelow(const uint64_t* keys, int64_t from, int64_t count,
                                    uint64_t limit) {
  constexpr int64_t kBlock = 32;
  for (; from + kBlock <= count; from += kBlock) {
    uint64_t found = 0;
    for (int64_t i = 0; i < kBlock; ++i) found |= keys[from + i] < limit ? 1 : 0;
    if (found != 0) break;
  }
  while (from < count && keys[from] >= limit) ++from;
  return from;
}

}  // namespace

// Candidates are collected until there are twice as many as wanted, and the worse half is dropped:
// what comes later must be below the worst of the others.
void SelectFirst(std::span<const uint64_t> keys, std::span<uint32_t> positions) {
  const auto count = static_cast<int64_t>(keys.size());
  const size_t wanted = positions.size();
  std::vector<Candidate> candidates;
  candidates.reserve(2 * wanted);
  const auto drop_the_worse = [&] {
    std::ranges::nth_element(candidates, candidates.begin() + (wanted - 1), std::less<>());
    candidates.resize(wanted);
    return candidates.back().key;
  };
  int64_t i = 0;
  for (; i < count && candidates.size() < 2 * wanted; ++i) {
    candidates.push_back({keys[i], static_cast<uint32_t>(i)});
  }
  uint64_t limit = drop_the_worse();
  for (i = NextBelow(keys.data(), i, count, limit); i < count;
       i = NextBelow(keys.data(), i + 1, count, limit)) {
    candidates.push_back({keys[i], static_cast<uint32_t>(i)});
    if (candidates.size() == 2 * wanted) limit = drop_the_worse();
  }
  drop_the_worse();
  std::ranges::sort(candidates, std::less<>());
  std::ranges::transform(candidates, positions.begin(), &Candidate::position);
}

}  // namespace cpu
