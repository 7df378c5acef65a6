// Forms for operations on few numbers, in graphs that run without a program (interpreter.cc):
// torch's kernels take longer to prepare for any strides, types and sizes than to compute these.
#pragma once

#include <ATen/ATen.h>

#include "aten/op.h"
#include "aten/small_loops.h"
#include "lazy/operation.h"

namespace torch_xla {

// Has operations of the kind, which have a form by now and one operand or two, computed by the loop
// where operands and result are few float32 numbers that lie together; or what is compared is, or
// few int64.
void RunSmallBy(lazy::OperationKind& kind, const small_loops::CompareLoops& loops);
void RunSmallBy(lazy::OperationKind& kind, small_loops::UnaryLoop loop);
void RunSmallBy(lazy::OperationKind& kind, small_loops::BinaryLoop loop);
// The same where operands and result are few bools.
void RunSmallBoolsBy(lazy::OperationKind& kind, small_loops::BoolLoop loop);
void RunSmallBoolsBy(lazy::OperationKind& kind, small_loops::BoolUnaryLoop loop);

// Choices among few float32 numbers, as torch's kernels make them; undefined where these are to do
// it. x with a number where the mask is true, whose rows or columns may be stretched; x or y; the
// values where x is above a limit, or NaN, and zero elsewhere.
at::Tensor FillWhereOnHost(const at::Tensor& x, const at::Tensor& mask, const at::Scalar& number);
at::Tensor ChooseOnHost(const at::Tensor& is_x, const at::Tensor& x, const at::Tensor& y);
at::Tensor KeepAboveOnHost(const at::Tensor& values, const at::Tensor& x, const at::Scalar& limit);

// The same of an element-wise lowering.
template <auto f, Promotion promotion>
void RunSmallComparisonBy(const small_loops::CompareLoops& loops) {
  RunSmallBy(recording::ElementwiseFamily<f, promotion>().kind(), loops);
}
template <auto f, Promotion promotion = Promotion::kDefault, typename Loop>
void RunSmallElementwiseOfBoolsBy(Loop* loop) {
  RunSmallBoolsBy(recording::ElementwiseFamily<f, promotion>().kind(), loop);
}
template <auto f, Promotion promotion = Promotion::kDefault, typename Loop>
void RunSmallElementwiseBy(Loop* loop) {
  RunSmallBy(recording::ElementwiseFamily<f, promotion>().kind(), loop);
}

}  // namespace torch_xla
