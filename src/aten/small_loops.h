// Element-wise operations on few numbers: float32, and what compares them and int64. What they give
// is what torch's kernels give, to the last bit.
#pragma once

#include <cstdint>

namespace torch_xla::small_loops {

// Numbers that lie together, or one that stands for as many.
template <typename T>
struct OperandOf {
  const T* data = nullptr;
  bool is_number = false;
};
using Operand = OperandOf<float>;
using UnaryLoop = void (*)(const float* x, float* result, int64_t count);
// One of the two at most is a number.
using BinaryLoop = void (*)(Operand x, Operand y, float* result, int64_t count);

void Negate(const float* x, float* result, int64_t count);
void Magnitude(const float* x, float* result, int64_t count);
void Relu(const float* x, float* result, int64_t count);
void Add(Operand x, Operand y, float* result, int64_t count);
void Subtract(Operand x, Operand y, float* result, int64_t count);
void Multiply(Operand x, Operand y, float* result, int64_t count);
void Divide(Operand x, Operand y, float* result, int64_t count);
// The larger one, or the one that is NaN.
void Larger(Operand x, Operand y, float* result, int64_t count);

// Adds to what is there.
void AddTo(float* __restrict sums, const float* x, int64_t count);

// Where bytes are not zero, the first of two; in the second, one number.
void Choose(const uint8_t* is_first, Operand x, Operand y, float* result, int64_t count);
void FillWhere(const uint8_t* is_filled, float number, float* numbers, int64_t count);
// The values where `x` is not at most `limit`, zero elsewhere.
void KeepAbove(const float* values, const float* x, float limit, float* result, int64_t count);

// The same of two: true where the first is less, and so on. Nothing is to a NaN, but unequal.
template <typename T>
using CompareLoop = void (*)(OperandOf<T> x, OperandOf<T> y, bool* result, int64_t count);
struct CompareLoops {
  CompareLoop<float> of_floats;
  CompareLoop<int64_t> of_integers;
};
extern const CompareLoops kEqual, kUnequal, kLess, kLessOrEqual, kGreater, kGreaterOrEqual;

// Bools, of which any byte but zero is true.
using BoolLoop = void (*)(const uint8_t* x, const uint8_t* y, bool* result, int64_t count);
void Both(const uint8_t* x, const uint8_t* y, bool* result, int64_t count);
void Either(const uint8_t* x, const uint8_t* y, bool* result, int64_t count);
using BoolUnaryLoop = void (*)(const uint8_t* x, bool* result, int64_t count);
void Invert(const uint8_t* x, bool* result, int64_t count);

}  // namespace torch_xla::small_loops
