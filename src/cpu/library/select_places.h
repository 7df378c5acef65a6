// Some elements of a line that is not sorted as a whole.
#pragma once

#include <cstdint>
#include <span>

namespace cpu {

// Writes the positions of the keys that stand at the places from `first` on when all are sorted, as
// many as `positions` has (at least one, and no more than there are); equal ones by position.
void SelectPlaces(std::span<const uint64_t> keys, int64_t first, std::span<uint32_t> positions);

}  // namespace cpu
