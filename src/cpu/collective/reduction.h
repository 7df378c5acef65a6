// The arithmetic of all_reduce and reduce_scatter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/collective/collective.h"
#include "hlo/element_type.h"

namespace cpu {

// True if Reduce does this; min and max of complex numbers, bit operations on floats, and types
// below a byte are not.
bool CanReduce(hlo::ElementType type, Reduction reduction);

// target[i] = sources[0][i] ∘ sources[1][i] ∘ …, from left to right. The target may be one of the
// sources. Data is aligned to its elements.
void Reduce(hlo::ElementType type, Reduction reduction, std::span<const std::byte* const> sources,
            std::byte* target, int64_t count);

}  // namespace cpu
