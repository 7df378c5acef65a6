// Some elements of a line that is not sorted as a whole.
#pragma once

#include <cstdint>
#include <span>

#include "cpu/library/sort_key.h"

namespace cpu {

// Writes the positions of the keys that stand at the places from `first` on when all are sorted, as
// many as `positions` has (at least one, and no more than there are); equal ones by position.
void SelectPlaces(std::span<const uint64_t> keys, int64_t first, std::span<uint32_t> positions);

// Writes the first places of each of some lines that lie side by side, one line's after the
// other's: `positions` has as many for each line. Elements are `width` bytes wide. Of few places,
// as each row of the lines is read once.
void SelectFirstOfLines(const SortOrder& order, const SortLines& lines, int64_t width,
                        std::span<uint32_t> positions);

}  // namespace cpu
