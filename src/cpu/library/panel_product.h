// Products of f32 matrices by kernels of our own. The same bits for the same values, however they
// lie in memory.
#pragma once

#include "cpu/library/product.h"

namespace cpu {

// C = A B, with p.k > 0. A and B are copied into panels first, piece by piece, so that how they lie
// in memory matters little. For processors with AVX2 and FMA.
void PanelProduct(const Product& p, const float* a, const float* b, float* c);

// The same for processors with AVX-512 (wide_panel_product.cc). A is read where it lies, and B,
// too, where its rows are contiguous; by measurement, copying them first is no quicker at any size.
// Where its columns are, they are transposed into panels, piece by piece.
void WidePanelProduct(const Product& p, const float* a, const float* b, float* c);

}  // namespace cpu
