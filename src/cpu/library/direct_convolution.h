// Convolution of any form and native type by plain loops over channels-last copies of the operands:
// what oneDNN does not do.
#pragma once

#include <memory>

#include "cpu/library/epilogue.h"
#include "cpu/library_call.h"

namespace cpu {

std::unique_ptr<LibraryCall> MakeDirectConvolution(const hlo::Instruction& convolution,
                                                   const Epilogue* epilogue,
                                                   const hlo::Shape& result_shape);

}  // namespace cpu
