// Element-wise operations on few float32 numbers. What they give is what torch's kernels give, to
// the last bit.
#pragma once

#include <cstdint>

namespace torch_xla::small_loops {

// Numbers that lie together, or one that stands for as many.
struct Operand {
  const float* data = nullptr;
  bool is_number = false;
};
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

}  // namespace torch_xla::small_loops
