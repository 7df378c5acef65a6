// The first elements of a line that is not sorted as a whole.
#pragma once

#include <cstdint>
#include <span>

namespace cpu {

// Writes the positions of the least keys, as many as `positions` has (at least one, and no more
// than there are), in their order; equal ones by position.
void SelectFirst(std::span<const uint64_t> keys, std::span<uint32_t> positions);

}  // namespace cpu
