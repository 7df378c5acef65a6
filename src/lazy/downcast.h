// Downcast: training in bfloat16 without a change to the program. With XLA_USE_BF16=1 each float32
// tensor of a recorded graph holds numbers of bfloat16's precision; it stays float32 to torch. With
// XLA_DOWNCAST_BF16=1 the same, and float64 tensors have float32's precision. Within one operation
// numbers are as precise as their type, so that sums do not lose their small terms.
#pragma once

#include <cstdint>

#include "hlo/builder.h"

namespace lazy {

class Downcast {
 public:
  // As the environment says now: libraries set the variables while the program runs.
  static Downcast FromEnvironment();

  // The value rounded, or itself.
  hlo::Value Round(hlo::Builder& builder, hlo::Value value) const;
  // Different for graphs that are rounded differently.
  uint64_t signature() const { return (floats_ ? 1u : 0u) | (doubles_ ? 2u : 0u); }

 private:
  bool floats_ = false;
  bool doubles_ = false;
};

}  // namespace lazy
