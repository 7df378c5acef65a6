// dot_general as a batch of matrix products over strided memory.
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/instruction.h"

namespace cpu {

// One operand as a batch of matrices [batch, free, contracted]: sizes come from ContractionShape.
// Where the dimensions of a group do not follow one another in memory with a single stride, or no
// stride is 1, the operand has to be packed: `packing_*` then say the dimensions, in the order to
// write them, and their strides in the operand.
struct ContractionOperand {
  std::vector<int64_t> batch_strides;
  int64_t free_stride = 0, contracted_stride = 0;
  bool packed = false;
  hlo::Dimensions packing_dimensions, packing_strides;
};

// Result: [batch..., m, n], dense.
struct ContractionShape {
  hlo::Dimensions batch;  // adjacent batch dimensions are merged where both operands allow it
  int64_t m = 1, n = 1, k = 1;
  ContractionOperand lhs, rhs;

  int64_t batch_count() const;
  // Of matrix `index` of the batch, in elements.
  int64_t Offset(const ContractionOperand& operand, int64_t index) const;
};

// `pack_lhs`, `pack_rhs`: the caller converts the element type, so that operand is packed anyway.
ContractionShape AnalyzeDot(const hlo::Instruction& dot, bool pack_lhs, bool pack_rhs);

}  // namespace cpu
