// Products of f32 matrices for processors with AVX-512. A is read where it lies, and B, too, where
// its rows are contiguous; by measurement, copying them first is no quicker at any size. Where its
// columns are, they are transposed into panels, piece by piece.
#pragma once

#include "cpu/library/product.h"

namespace cpu {

// C = A B, with p.k > 0. The same bits for the same values, however they lie in memory.
void WidePanelProduct(const Product& p, const float* a, const float* b, float* c);

}  // namespace cpu
