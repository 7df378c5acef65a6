// Convolutions that oneDNN does not do, or not as quickly: routines of our own, one file each.
#pragma once

#include <memory>

#include "cpu/library/convolution_problem.h"
#include "cpu/library/epilogue.h"
#include "cpu/library_call.h"

namespace cpu {

// pointwise_convolution.cc: single pixels, channels first, as a product of matrices for each image,
// on the operands where they lie. Null if the convolution is none of these: forward or its gradient
// by the input, of f32, windows of one pixel without strides and padding, images of some pixels.
std::unique_ptr<LibraryCall> MakePointwiseConvolution(const hlo::Instruction& convolution,
                                                      const ConvolutionProblem& problem,
                                                      const Epilogue* epilogue,
                                                      const hlo::Shape& result_shape);

// depthwise_convolution.cc: each channel by itself, channels first, on the operands where they lie.
// Null if the convolution is none of these: of f32 or bf16 (summed in f32), along one or two
// dimensions, whose neighbours lie beside each other; forward with one input to each group, or the
// gradient by the input with one output, too, and without strides. Padding counts as nothing, also
// where a weight is infinite or NaN.
std::unique_ptr<LibraryCall> MakeDepthwiseConvolution(const hlo::Instruction& convolution,
                                                      const ConvolutionProblem& problem,
                                                      const Epilogue* epilogue,
                                                      const hlo::Shape& result_shape);

// patch_convolution.cc: of f64 and complex numbers, as products of matrices whose columns are the
// windows' patches, and of f32 gradients of kernels of single pixels that lie in rows. Null if the
// convolution is none of these, if each channel is by itself, or if its result lies so that its
// pixels are no rows or columns of a matrix. Padding counts as zeros.
std::unique_ptr<LibraryCall> MakePatchConvolution(const hlo::Instruction& convolution,
                                                  const ConvolutionProblem& problem,
                                                  const Epilogue* epilogue,
                                                  const hlo::Shape& result_shape);

// direct_convolution.cc: of any form and native type, by plain loops over channels-last copies of
// the operands.
std::unique_ptr<LibraryCall> MakeDirectConvolution(const hlo::Instruction& convolution,
                                                   const Epilogue* epilogue,
                                                   const hlo::Shape& result_shape);

}  // namespace cpu
