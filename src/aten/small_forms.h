// Forms for operations on few numbers, in graphs that run without a program (interpreter.cc):
// torch's kernels take longer to prepare for any strides, types and sizes than to compute these.
#pragma once

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

// The same of an element-wise lowering.
template <auto f, Promotion promotion>
void RunSmallComparisonBy(const small_loops::CompareLoops& loops) {
  RunSmallBy(recording::ElementwiseFamily<f, promotion>().kind(), loops);
}
template <auto f, Promotion promotion = Promotion::kDefault>
void RunSmallElementwiseOfBoolsBy(small_loops::BoolLoop loop) {
  RunSmallBoolsBy(recording::ElementwiseFamily<f, promotion>().kind(), loop);
}
template <auto f, Promotion promotion = Promotion::kDefault, typename Loop>
void RunSmallElementwiseBy(Loop* loop) {
  RunSmallBy(recording::ElementwiseFamily<f, promotion>().kind(), loop);
}

}  // namespace torch_xla
