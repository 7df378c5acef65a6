#include "cpu/library/select_places.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <vector>

#include "cpu/library/vector_clones.h"

namespace cpu {
namespace {

constexpr int64_t kLongLine = 1 << 13;

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

// The first place from `from` on whose key is below its own limit, or `count`.
CPU_VECTOR_CLONES int64_t NextBelowItsLimit(const uint64_t* keys, const uint64_t* limits,
                                            int64_t from, int64_t count) {
  constexpr int64_t kBlock = 16;
  for (; from + kBlock <= count; from += kBlock) {
    uint64_t found = 0;
    for (int64_t i = 0; i < kBlock; ++i) found |= keys[from + i] < limits[from + i] ? 1 : 0;
    if (found != 0) break;
  }
  while (from < count && keys[from] >= limits[from]) ++from;
  return from;
}

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

// Those of `count` candidates (`at` gives each) whose highest bits that differ at all put them
// where the sorted places from `first` on are, `wanted` of them; in the order in which they come.
// `first` becomes the place among these.
std::vector<Candidate> Narrowed(int64_t count, const auto& at, int64_t& first, int64_t wanted) {
  const int digit_bits = count < kLongLine ? 8 : 11;
  uint64_t differing = 0;
  for (int64_t i = 0; i < count; ++i) differing |= at(i).key ^ at(0).key;
  const int shift = std::max(0, static_cast<int>(std::bit_width(differing)) - digit_bits);
  const uint64_t mask = (uint64_t{1} << digit_bits) - 1;
  const auto digit_of = [&](uint64_t key) { return key >> shift & mask; };
  std::vector<uint32_t> sizes(mask + 1);
  for (int64_t i = 0; i < count; ++i) ++sizes[digit_of(at(i).key)];
  uint64_t low = 0;
  while (first >= sizes[low]) first -= sizes[low++];
  uint64_t high = low;
  int64_t held = sizes[low];
  while (held < first + wanted) held += sizes[++high];
  std::vector<Candidate> found;
  found.reserve(held);
  for (int64_t i = 0; i < count; ++i) {
    const Candidate candidate = at(i);
    const uint64_t digit = digit_of(candidate.key);
    if (digit >= low && digit <= high) found.push_back(candidate);
  }
  return found;
}

void SelectFromMiddle(std::span<const uint64_t> keys, int64_t first,
                      std::span<uint32_t> positions) {
  constexpr size_t kFew = 64;
  const auto wanted = static_cast<int64_t>(positions.size());
  const auto at = [&](int64_t i) { return Candidate{keys[i], static_cast<uint32_t>(i)}; };
  auto candidates = Narrowed(static_cast<int64_t>(keys.size()), at, first, wanted);
  for (size_t before = keys.size(); candidates.size() > kFew && candidates.size() < before;) {
    before = candidates.size();
    const std::vector<Candidate> all = std::move(candidates);
    const auto one_of = [&](int64_t i) { return all[i]; };
    candidates = Narrowed(static_cast<int64_t>(before), one_of, first, wanted);
  }
  // (Many that are equal stand in their order already.)
  if (!std::ranges::is_sorted(candidates, std::less<>())) {
    std::ranges::sort(candidates, std::less<>());
  }
  const std::span<const Candidate> chosen(candidates.data() + first, positions.size());
  std::ranges::transform(chosen, positions.begin(), &Candidate::position);
}

}  // namespace

void SelectPlaces(std::span<const uint64_t> keys, int64_t first, std::span<uint32_t> positions) {
  constexpr int64_t kNearStart = 64;
  if (first == 0) return SelectFirst(keys, positions);
  if (first >= kNearStart) return SelectFromMiddle(keys, first, positions);
  std::vector<uint32_t> from_start(first + positions.size());
  SelectFirst(keys, from_start);
  std::ranges::copy(from_start.begin() + first, from_start.end(), positions.begin());
}

void SelectFirstOfLines(const SortOrder& order, const SortLines& lines, int64_t width,
                        std::span<uint32_t> positions) {
  const int64_t count = lines.lines, wanted = static_cast<int64_t>(positions.size()) / count;
  // The first ones so far of each line, sorted, and the last of them.
  std::vector<uint64_t> keys(count), first(count * wanted), limits(count);
  for (int64_t i = 0; i < lines.count; ++i) {
    MakeSortKeys(order, {lines.start + i * lines.stride * width, count}, keys.data());
    const auto insert = [&](int64_t line) {
      uint64_t* sorted = first.data() + line * wanted;
      uint32_t* at = positions.data() + line * wanted;
      int64_t place = std::min(i, wanted - 1);
      for (; place > 0 && sorted[place - 1] > keys[line]; --place) {
        sorted[place] = sorted[place - 1];
        at[place] = at[place - 1];
      }
      sorted[place] = keys[line];
      at[place] = static_cast<uint32_t>(i);
      limits[line] = sorted[wanted - 1];
    };
    if (i < wanted) {
      for (int64_t line = 0; line < count; ++line) insert(line);
      continue;
    }
    for (int64_t line = NextBelowItsLimit(keys.data(), limits.data(), 0, count); line < count;
         line = NextBelowItsLimit(keys.data(), limits.data(), line + 1, count)) {
      insert(line);
    }
  }
}

}  // namespace cpu
