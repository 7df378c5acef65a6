// torch's type promotion, for what is not element-wise (element-wise operators receive their
// operands promoted: op.h). Operands fall into two classes, tensors with dimensions and tensors
// without; the second changes the result type only when its category (bool < integer < float <
// complex) is higher than that of the first.
#pragma once

#include "aten/lowering.h"

namespace torch_xla {

// The type that holds both: f16 and bf16 give f32, an integer and a float give the float.
ElementType PromoteTypes(ElementType a, ElementType b);
ElementType ResultType(const Values& operands);
// All converted to their common type.
void PromoteAll(Builder& b, Values& xs);

// f32 for integers and bools; the type itself for floats and complex numbers.
ElementType FloatType(ElementType type);
Value ToFloat(Builder& b, Value x);
// What sums of this type are taken in: f32 for f16 and bf16, itself otherwise.
ElementType AccumulationType(ElementType type);
Value ToAccumulation(Builder& b, Value x);
// s64 for integers and bools, the type that sum and prod return.
ElementType SumType(ElementType type);
// `x != 0`.
Value ToPred(Builder& b, Value x);

}  // namespace torch_xla
