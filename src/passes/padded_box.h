// How an array of padded sizes holds one of true sizes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hlo/shape.h"

namespace passes {

// How an argument or a result of `sizes` lies in an array of `padded` ones: at its beginning, in
// each dimension. Dimensions that others were joined into are those here; the array's own are
// `dimensions`.
struct PaddedBox {
  hlo::Dimensions sizes, padded;
  hlo::Dimensions dimensions;
  bool is_padded() const { return sizes != padded; }
  bool operator==(const PaddedBox&) const = default;
};

// Copies the elements of the box, of `width` bytes each, into the padded array, or out of it. The
// rest of the array is left alone.
void CopyIntoPadded(const PaddedBox& box, int64_t width, const std::byte* from, std::byte* padded);
void CopyFromPadded(const PaddedBox& box, int64_t width, const std::byte* padded, std::byte* to);

}  // namespace passes
