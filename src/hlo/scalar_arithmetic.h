// Arithmetic of single numbers as StableHLO defines it, with XLA:CPU's choices where the
// specification leaves some. Integers work in their own type; f16, bf16 and f32 are widened to
// double by the caller.
#pragma once

#include <complex>
#include <cstdint>

#include "hlo/opcode.h"

namespace hlo::evaluation {

// Each throws Error (kInternal) for an operation that does not apply to the type; shape inference
// has refused those.
double RealUnary(Opcode opcode, double x);
double RealBinary(Opcode opcode, double x, double y);
// abs is not here: its result is real.
std::complex<double> ComplexUnary(Opcode opcode, std::complex<double> x);
std::complex<double> ComplexBinary(Opcode opcode, std::complex<double> x, std::complex<double> y);
// Also for pred, as bool.
template <typename T>
T IntegerUnary(Opcode opcode, T x);
template <typename T>
T IntegerBinary(Opcode opcode, T x, T y);

// Rounds to nearest even in a format of so many bits: too large a number becomes infinity, one
// below the format's normal range becomes zero, NaN stays.
double ReducePrecision(double x, int64_t exponent_bits, int64_t mantissa_bits);

}  // namespace hlo::evaluation
