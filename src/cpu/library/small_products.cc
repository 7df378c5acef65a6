#include "cpu/library/small_products.h"

#include "cpu/library/vector_clones.h"

namespace cpu {
namespace {

constexpr int64_t kMostSmallSummands = 4, kMostSmallElements = 128;

template <int64_t summands>
[[gnu::always_inline]] inline float SmallSum(const Product& p, const float* a, const float* b) {
  float sum = a[0] * b[0];
  for (int64_t k = 1; k < summands; ++k) sum += a[k * p.a_column] * b[k * p.b_row];
  return sum;
}

template <int64_t summands>
[[gnu::always_inline]] inline void RunSmall(const Product& p, const ProductSteps& steps,
                                            int64_t count, const float* a, const float* b,
                                            float* c) {
  for (int64_t i = 0; i < count; ++i, a += steps.a, b += steps.b, c += steps.c) {
    for (int64_t row = 0; row < p.m; ++row) {
      const float* line = a + row * p.a_row;
      float* to = c + row * p.ldc;
      if (p.b_column == 1) {
        for (int64_t j = 0; j < p.n; ++j) to[j] = SmallSum<summands>(p, line, b + j);
      } else {
        for (int64_t j = 0; j < p.n; ++j) to[j] = SmallSum<summands>(p, line, b + j * p.b_column);
      }
    }
  }
}

}  // namespace

bool IsSmallProduct(const Product& product) {
  return product.k >= 1 && product.k <= kMostSmallSummands &&
         product.m * product.n <= kMostSmallElements;
}

CPU_VECTOR_CLONES void RunSmallProducts(const Product& product, const ProductSteps& steps,
                                        int64_t count, const float* a, const float* b, float* c) {
  switch (product.k) {
    case 1:
      return RunSmall<1>(product, steps, count, a, b, c);
    case 2:
      return RunSmall<2>(product, steps, count, a, b, c);
    case 3:
      return RunSmall<3>(product, steps, count, a, b, c);
    default:
      return RunSmall<kMostSmallSummands>(product, steps, count, a, b, c);
  }
}

}  // namespace cpu
