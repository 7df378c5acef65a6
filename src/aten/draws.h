// From random bits to numbers: what every distribution draws is made here, so that the ends of each
// interval are right in every type and on every engine, whatever the bits are.
//
// Bits are u32, or u64 for f64: those of a generator, each as likely as any other. Results are in
// the type that their distribution is computed in, f32 or f64.
#pragma once

#include "aten/lowering.h"

namespace torch_xla {

// Bits of Philox as words of a type, u32 or u64.
Value RandomBits(Builder& b, Value state, const Dimensions& dimensions, ElementType word);
// As the words that a draw in the floating `type` takes.
Value BitsFor(Builder& b, Value state, const Dimensions& dimensions, ElementType type);

// Uniform over [0, 1) in equal steps that `type`, which may be f16 or bf16, has without rounding:
// 2^-8 for bf16, 2^-11 for f16, 2^-24 for f32, 2^-53 for f64.
Value UnitUniform(Builder& b, Value bits, ElementType type);

// The numbers of `type` in [from, to): the first, the last, and the width that a unit uniform
// number is stretched to. As in eager, the ends are rounded to the type.
struct Interval {
  double from, width, last;
};
Interval IntervalOf(ElementType type, double from, double to);
// A unit uniform number in an interval, whose excluded end no rounding reaches.
Value InInterval(Builder& b, Value unit, Value from, Value width, Value last);

// Uniform over (-1, 1) and symmetric. Near the ends, where x rounds, 1 - |x| is still exact: it is
// at least 2^-31 (2^-63 for f64), while x itself may be 1 or -1.
struct CenteredUniform {
  Value x;
  Value complement;  // 1 - |x|
};
CenteredUniform DrawCentered(Builder& b, Value bits);

// Finite, within 6.2 deviations (9.1 for f64).
Value StandardNormal(Builder& b, Value bits);
// Of mean 1, positive and finite: from 2^-32 to 22.2 (from 2^-64 to 44.4 for f64).
Value StandardExponential(Builder& b, Value bits);
// Finite.
Value StandardCauchy(Builder& b, Value bits);
// True with probability p of [0, 1], to the nearest multiple of 2^-32; the bits are u32. Always so
// for p = 1, never for p = 0.
Value Coin(Builder& b, Value bits, double p);

// What is beyond `type`'s finite numbers becomes the last of them.
Value ToFinite(Builder& b, Value x, ElementType type);
// Also, what is below its smallest positive number becomes that one.
Value ToPositiveFinite(Builder& b, Value x, ElementType type);

}  // namespace torch_xla
