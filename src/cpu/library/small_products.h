// Many products of f32 that are small, one after the other: what each would take to begin, for any
// sizes, is more than it takes.
#pragma once

#include <cstdint>

#include "cpu/library/product.h"

namespace cpu {

// How far apart the operands and results of neighbouring products are, in elements.
struct ProductSteps {
  int64_t a, b, c;
};

// Whether the product is one that RunSmallProducts computes.
bool IsSmallProduct(const Product& product);

void RunSmallProducts(const Product& product, const ProductSteps& steps, int64_t count,
                      const float* a, const float* b, float* c);

}  // namespace cpu
