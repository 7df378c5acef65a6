// torch's type promotion. Operands fall into three classes: tensors with dimensions, tensors
// without, and numbers; a lower class changes the result type only when its category (bool <
// integer < float < complex) is higher than that of all classes above it.
#pragma once

#include <initializer_list>

#include "aten/lowering.h"

namespace torch_xla {

// A tensor or a number (a Python scalar, which arrives as a scalar value) on its way into
// promotion.
struct Operand {
  Operand(Value value, bool is_number = false) : value(value), is_number(is_number) {}
  Value value;
  bool is_number;
};

// The type that holds both: f16 and bf16 give f32, an integer and a float give the float.
ElementType PromoteTypes(ElementType a, ElementType b);
ElementType ResultType(std::initializer_list<Operand> operands);
// Both converted to their common type and stretched to their common shape.
std::pair<Value, Value> Promote(Builder& b, Operand x, Operand y);
// The same with integers and bools becoming f32 (true division, atan2, …).
std::pair<Value, Value> PromoteToFloat(Builder& b, Operand x, Operand y);
Values PromoteAll(Builder& b, std::initializer_list<Operand> operands);

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
