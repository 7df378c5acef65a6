// Floating point formats of a byte or less.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/element_type.h"

namespace hlo {

// The bits of the number of a format (f4E2M1FN to f8E8M0FNU) that is nearest to a finite `value`,
// the even one of two; nothing if none is within the format's range.
std::optional<uint8_t> MinifloatFromDouble(ElementType type, double value);

}  // namespace hlo
