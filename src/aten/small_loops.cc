#include "aten/small_loops.h"

#include <cmath>

namespace torch_xla::small_loops {
namespace {

template <typename F>
void ForEach(Operand x, Operand y, float* __restrict result, int64_t count, F f) {
  if (x.is_number) {
    const float number = *x.data;
    for (int64_t i = 0; i < count; ++i) result[i] = f(number, y.data[i]);
  } else if (y.is_number) {
    const float number = *y.data;
    for (int64_t i = 0; i < count; ++i) result[i] = f(x.data[i], number);
  } else {
    for (int64_t i = 0; i < count; ++i) result[i] = f(x.data[i], y.data[i]);
  }
}

}  // namespace

void Negate(const float* x, float* __restrict result, int64_t count) {
  for (int64_t i = 0; i < count; ++i) result[i] = -x[i];
}
void Magnitude(const float* x, float* __restrict result, int64_t count) {
  for (int64_t i = 0; i < count; ++i) result[i] = std::fabs(x[i]);
}
// NaN stays.
void Relu(const float* x, float* __restrict result, int64_t count) {
  for (int64_t i = 0; i < count; ++i) result[i] = x[i] < 0 ? 0.0f : x[i];
}
void Add(Operand x, Operand y, float* result, int64_t count) {
  ForEach(x, y, result, count, [](float a, float b) { return a + b; });
}
void Subtract(Operand x, Operand y, float* result, int64_t count) {
  ForEach(x, y, result, count, [](float a, float b) { return a - b; });
}
void Multiply(Operand x, Operand y, float* result, int64_t count) {
  ForEach(x, y, result, count, [](float a, float b) { return a * b; });
}
void Divide(Operand x, Operand y, float* result, int64_t count) {
  ForEach(x, y, result, count, [](float a, float b) { return a / b; });
}

}  // namespace torch_xla::small_loops
