// Types for which torch has no kernel of an operator, neither on the CPU nor on GPUs, though its
// lowering would take them.
#pragma once

#include <c10/core/ScalarType.h>

namespace lazy {
class Operation;
}

namespace torch_xla {

// Throws hlo::Error (kUnimplemented) if torch has no kernel for the operands' types. Of no elements
// its kernels may take any type (refusal.cc asks them).
void CheckTypes(const lazy::Operation& operation);

// Whether it has none, whatever becomes of operands without elements.
bool RefusesTypes(const lazy::Operation& operation);

// For what is recorded by hand: throws torch's NotImplementedError unless `has_kernel`. `kernel` is
// what eager calls it.
void CheckKernel(bool has_kernel, const char* kernel, at::ScalarType type);

}  // namespace torch_xla
