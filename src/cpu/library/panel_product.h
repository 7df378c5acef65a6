// Products of f32 matrices that are copied into panels first, piece by piece, so that how they lie
// in memory matters little. For processors with AVX2 and FMA.
#pragma once

#include "cpu/library/product.h"

namespace cpu {

// C = A B, with p.k > 0. The same bits for the same values, however they lie in memory.
void PanelProduct(const Product& p, const float* a, const float* b, float* c);

}  // namespace cpu
