#include "aten/small_loops.h"

#include <cmath>
#include <functional>

namespace torch_xla::small_loops {
namespace {

template <typename T, typename Result, typename F>
void ForEach(OperandOf<T> x, OperandOf<T> y, Result* __restrict result, int64_t count, F f) {
  if (x.is_number) {
    const T number = *x.data;
    for (int64_t i = 0; i < count; ++i) result[i] = f(number, y.data[i]);
  } else if (y.is_number) {
    const T number = *y.data;
    for (int64_t i = 0; i < count; ++i) result[i] = f(x.data[i], number);
  } else {
    for (int64_t i = 0; i < count; ++i) result[i] = f(x.data[i], y.data[i]);
  }
}

template <typename T, typename F>
void Compare(OperandOf<T> x, OperandOf<T> y, bool* result, int64_t count) {
  ForEach(x, y, result, count, F());
}
template <template <typename> typename F>
constexpr CompareLoops kComparing{&Compare<float, F<float>>, &Compare<int64_t, F<int64_t>>};

}  // namespace

const CompareLoops kEqual = kComparing<std::equal_to>;
const CompareLoops kUnequal = kComparing<std::not_equal_to>;
const CompareLoops kLess = kComparing<std::less>;
const CompareLoops kLessOrEqual = kComparing<std::less_equal>;
const CompareLoops kGreater = kComparing<std::greater>;
const CompareLoops kGreaterOrEqual = kComparing<std::greater_equal>;

void Both(const uint8_t* x, const uint8_t* y, bool* __restrict result, int64_t count) {
  for (int64_t i = 0; i < count; ++i) result[i] = (x[i] != 0) & (y[i] != 0);
}
void Either(const uint8_t* x, const uint8_t* y, bool* __restrict result, int64_t count) {
  for (int64_t i = 0; i < count; ++i) result[i] = (x[i] != 0) | (y[i] != 0);
}

void Invert(const uint8_t* x, bool* __restrict result, int64_t count) {
  for (int64_t i = 0; i < count; ++i) result[i] = x[i] == 0;
}

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
void Larger(Operand x, Operand y, float* result, int64_t count) {
  ForEach(x, y, result, count, [](float a, float b) {
    const float larger = a < b ? b : a;
    return b != b ? b : larger;
  });
}

void AddTo(float* __restrict sums, const float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sums[i] += x[i];
}

void Choose(const uint8_t* is_first, Operand x, Operand y, float* __restrict result,
            int64_t count) {
  if (x.is_number) {
    const float number = *x.data;
    for (int64_t i = 0; i < count; ++i) result[i] = is_first[i] != 0 ? number : y.data[i];
  } else if (y.is_number) {
    const float number = *y.data;
    for (int64_t i = 0; i < count; ++i) result[i] = is_first[i] != 0 ? x.data[i] : number;
  } else {
    for (int64_t i = 0; i < count; ++i) result[i] = is_first[i] != 0 ? x.data[i] : y.data[i];
  }
}
void FillWhere(const uint8_t* is_filled, float number, float* numbers, int64_t count) {
  for (int64_t i = 0; i < count; ++i) numbers[i] = is_filled[i] != 0 ? number : numbers[i];
}
void KeepAbove(const float* values, const float* x, float limit, float* __restrict result,
               int64_t count) {
  for (int64_t i = 0; i < count; ++i) result[i] = x[i] <= limit ? 0.0f : values[i];
}

}  // namespace torch_xla::small_loops
