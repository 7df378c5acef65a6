// Algebraic simplification: the rewrites that make a program smaller and never change a bit of its
// results.
#pragma once

#include "hlo/module.h"

namespace passes {

// Applies, in a few walks over each computation from operands to users:
//   x + 0, x - 0, x * 1, x / 1, x & ones, x | 0, x ^ x, …; division by a power of two as
//   multiplication; x ** 2 as x * x; double negation and complement; select with a constant
//   predicate or equal arms; convert chains that lose nothing; chains of reshape, transpose,
//   broadcast_in_dim, slice, reverse, and those that do nothing; pads of nothing or that only crop;
//   concatenation of one; slices of one piece of a concatenation; dynamic slices at constant
//   starts; get_tuple_element of tuple; transposes of a dot's operands, which become its dimension
//   numbers; reductions over size-1 dimensions; if and case with a constant predicate; a while
//   whose condition is constantly false.
// Safe for NaN, infinities and signed zero: x + 0 goes only where -0 + 0 = +0 cannot show, x * 0
// never for floats. Instructions that die are removed. Returns true if the module changed.
bool Simplify(hlo::Module& module);

}  // namespace passes
