// One function per family of library routines; null where the family does not do the instruction.
// For an internal composite, `epilogue` is its parsed body and the contraction is
// epilogue.contraction().
#pragma once

#include <memory>

#include "cpu/library/epilogue.h"
#include "cpu/library_call.h"

namespace cpu {

std::unique_ptr<LibraryCall> BindDot(const hlo::Instruction& dot, const Epilogue* epilogue,
                                     const hlo::Shape& result_shape);
std::unique_ptr<LibraryCall> BindConvolution(const hlo::Instruction& convolution,
                                             const Epilogue* epilogue,
                                             const hlo::Shape& result_shape);
// cholesky, triangular_solve and the lapack_*_ffi custom calls.
std::unique_ptr<LibraryCall> BindLinearAlgebra(const hlo::Instruction& instruction);
// A custom call whose target has a handler (cpu/foreign_handlers.h).
std::unique_ptr<LibraryCall> BindForeignCall(const hlo::Instruction& call);
// The custom calls TopK and mhlo.topk; a composite whose results are slices of a sort.
std::unique_ptr<LibraryCall> BindTopK(const hlo::Instruction& call);
std::unique_ptr<LibraryCall> BindSlicesOfSort(const hlo::Instruction& composite);
// A composite whose body holds one of hlo/attention_composite.h.
std::unique_ptr<LibraryCall> BindAttention(const hlo::Instruction& composite);
std::unique_ptr<LibraryCall> BindFft(const hlo::Instruction& instruction);

}  // namespace cpu
