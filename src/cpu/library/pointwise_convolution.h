// Convolutions of single pixels, channels first: a product of matrices for each image, on the
// operands where they lie.
#pragma once

#include <memory>

#include "cpu/library/convolution_problem.h"
#include "cpu/library/epilogue.h"
#include "cpu/library_call.h"

namespace cpu {

// Null if the convolution is none of these: forward or its gradient by the input, of f32, windows
// of one pixel without strides and padding, images of some pixels.
std::unique_ptr<LibraryCall> MakePointwiseConvolution(const hlo::Instruction& convolution,
                                                      const ConvolutionProblem& problem,
                                                      const Epilogue* epilogue,
                                                      const hlo::Shape& result_shape);

}  // namespace cpu
