// Products of few rows with the transpose of a matrix, as linear layers make them at inference:
// each element of the result is a sum over two contiguous lines, so nothing has to be copied. For
// processors with AVX-512.
#pragma once

#include "cpu/library/product.h"

namespace cpu {

// C = A B where A's rows and B's columns are contiguous, with p.k > 0.
void RowProduct(const Product& p, const float* a, const float* b, float* c);

}  // namespace cpu
