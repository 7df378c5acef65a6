// Downcast: narrower numbers without a change to the program, whose tensors stay what they are to
// torch. With XLA_USE_BF16=1 each float32 or float64 tensor of a recorded graph holds numbers of
// bfloat16's precision. With XLA_DOWNCAST_BF16=1 float32 does, and float64 has float32's. With
// XLA_USE_32BIT_LONG=1 integers of 64 bits are what 32 bits hold of them. Within one operation
// numbers are as precise as their type, so that sums do not lose their small terms.
#pragma once

#include <cstdint>

#include "hlo/builder.h"

namespace lazy {

class Downcast {
 public:
  // As the environment says now: libraries set the variables while the program runs.
  static Downcast FromEnvironment();

  // The type whose numbers values of this type hold.
  hlo::ElementType Held(hlo::ElementType type) const;
  // The value rounded, or itself.
  hlo::Value Round(hlo::Builder& builder, hlo::Value value) const;
  // Different for graphs that are rounded differently; 0: nothing is.
  uint64_t signature() const {
    return (uses_bf16_ ? 1u : 0u) | (downcasts_ ? 2u : 0u) | (has_short_longs_ ? 4u : 0u);
  }

 private:
  bool uses_bf16_ = false;
  bool downcasts_ = false;
  bool has_short_longs_ = false;
};

}  // namespace lazy
