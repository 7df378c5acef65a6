// Convolutions of each channel by itself, channels first, on the operands where they lie.
#pragma once

#include <memory>

#include "cpu/library/convolution_problem.h"
#include "cpu/library/epilogue.h"
#include "cpu/library_call.h"

namespace cpu {

// Null if the convolution is none of these: of f32 or bf16 (summed in f32), along one or two
// dimensions, whose neighbours lie beside each other; forward with one input to each group, or the
// gradient by the input with one output, too, and without strides. Padding counts as nothing, also
// where a weight is infinite or NaN.
std::unique_ptr<LibraryCall> MakeDepthwiseConvolution(const hlo::Instruction& convolution,
                                                      const ConvolutionProblem& problem,
                                                      const Epilogue* epilogue,
                                                      const hlo::Shape& result_shape);

}  // namespace cpu
