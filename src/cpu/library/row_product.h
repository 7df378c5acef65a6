// Products of few rows with a matrix, as layers make them at inference. Of a transposed one, as
// linear layers have it, each element of the result is a sum over two contiguous lines; of another,
// each row is a sum of the matrix's rows. So nothing has to be copied. What bounds them is reading
// the matrix, so it may be of a narrower type, whose numbers become f32 in registers. For
// processors with AVX2 or AVX-512.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cpu/library/product.h"

namespace cpu {

// What the lines of the matrix consist of.
enum class LineType {
  kFloat,
  kRounded,  // f32, of which the nearest bf16 counts
  kBFloat16,
  kFloat16,
  kInt8,
};

// Of lines of `stored` that a product reads as numbers of `read`; nullopt if there is no such type.
std::optional<LineType> LineTypeOf(hlo::ElementType stored, hlo::ElementType read);

// The most of B's rows that pay as one sum, which is a number of f32 for each of C's elements.
inline constexpr int64_t kMostSummedRows = int64_t{1} << 14;

// True if this processor has the instructions.
bool RunsRows();

// C = A B where A's rows are contiguous, and B's rows or columns, with p.k > 0. A and C are of f32.
std::unique_ptr<ProductRoutine> MakeRowRoutine(LineType type);

}  // namespace cpu
