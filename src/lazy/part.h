// Parts of a value that begin at an index: static slices where the index is a constant of the
// program, dynamic ones where it varies.
#pragma once

#include "hlo/builder.h"
#include "lazy/op.h"

namespace lazy {

// `size` elements of x's dimension, from `start` on, `stride` apart. They lie within x.
hlo::Value TakePart(hlo::Builder& b, hlo::Value x, int64_t dimension, Index start, int64_t size,
                    int64_t stride = 1);

// x with such elements replaced by `part`, of x's type.
hlo::Value PutPart(hlo::Builder& b, hlo::Value x, hlo::Value part, int64_t dimension, Index start,
                   int64_t stride = 1);

// `part` in its place along a dimension of `size` elements, zero elsewhere: TakePart's gradient.
hlo::Value SpreadPart(hlo::Builder& b, hlo::Value part, int64_t dimension, Index start,
                      int64_t stride, int64_t size);

}  // namespace lazy
