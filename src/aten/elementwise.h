// What the element-wise families share, and lowerings of theirs that others compose.
#pragma once

#include "aten/lowering.h"

namespace torch_xla {

// Some functions have no meaning for some numbers: the others are refused, as in eager.
void RequireReal(Value x);
void RequireIntegers(Value x);
void RequireFloats(Value x);
template <auto f>
Value OfReal(Builder& b, Value x) {
  RequireReal(x);
  return f(b, x);
}
template <auto f>
Value OfReals(Builder& b, Value x, Value y) {
  RequireReal(x);
  return f(b, x, y);
}

// The signed integer type of a floating type's width, for its bits.
ElementType SignedIntegerAsWide(ElementType type);
// The sign bit as a predicate: true for -0 and negative NaNs.
Value SignBit(Builder& b, Value x);
// x with y's sign bit.
Value CopySignFrom(Builder& b, Value x, Value y);
Value IsNan(Builder& b, Value x);
// Division that rounds down, and its remainder, which has the divisor's sign.
Value FloorDivide(Builder& b, Value x, Value y);
Value FloorRemainder(Builder& b, Value x, Value y);
Value Truncate(Builder& b, Value x);
// `x.to(type)`: bools are `x != 0`, a complex number gives its real part, and a float as a byte is
// its integer part modulo 256.
Value Cast(Builder& b, Value x, ElementType type);
// x where the predicate holds, else zero.
Value ZeroUnless(Builder& b, Value predicate, Value x);
Value Acos(Builder& b, Value x);
// |x|; bools and unsigned integers as they are.
Value Magnitude(Builder& b, Value x);
Value Reciprocal(Builder& b, Value x);
// x with the sign of its imaginary part changed; real numbers as they are.
Value Conjugate(Builder& b, Value x);
Value OneMinus(Builder& b, Value x);
// The gradients of the logistic function and of tanh, from their results.
Value SigmoidBackward(Builder& b, Value gradient, Value y);
Value TanhBackward(Builder& b, Value gradient, Value y);
// log(exp(x) + exp(y)).
Value LogAddExp(Builder& b, Value x, Value y);

}  // namespace torch_xla
