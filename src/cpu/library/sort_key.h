// Numbers that stand for a sort's elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/library/sort.h"

namespace cpu {

// Whether elements of the type have such numbers.
bool HasSortKey(hlo::ElementType type);

// Elements of one array: of `lines` lines, neighbours of each other, `count` each, `stride` apart.
struct SortLines {
  const std::byte* start;
  int64_t count, stride = 1, lines = 1;
};

// Writes to keys[l * count + i] an unsigned number for element i of line l; their order is `order`.
void MakeSortKeys(const SortOrder& order, const SortLines& lines, uint64_t* keys);

}  // namespace cpu
