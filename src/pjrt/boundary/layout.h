// How arrays lie in memory: on these devices always dense and row-major, on the host with any
// strides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/shape.h"
#include "pjrt/c_api.h"

// A layout's text: "{1,0}".
struct PJRT_Layouts_MemoryLayout {
  std::string text;
  bool owned_by_executable = false;
};

namespace pjrt::boundary {

std::string LayoutText(int64_t rank);
// Dimensions from minor to major of a dense row-major array.
std::vector<int64_t> RowMajor(int64_t rank);
hlo::Dimensions RowMajorByteStrides(const hlo::Shape& shape);
// The layout as the interface writes it; points at `minor_to_major`.
PJRT_Buffer_MemoryLayout DenseLayout(const std::vector<int64_t>& minor_to_major);
// True if an array lies the same way with both; strides of dimensions of one element mean nothing.
bool SameStrides(const hlo::Dimensions& a, const hlo::Dimensions& b, const hlo::Shape& shape);
// Strides in bytes that a layout means (null: row-major). Throws for tiles.
hlo::Dimensions ByteStrides(const PJRT_Buffer_MemoryLayout* layout, const hlo::Shape& shape);
// Throws kUnimplemented unless a layout (null allowed) is dense row-major.
void CheckRowMajor(const PJRT_Buffer_MemoryLayout* layout, const hlo::Shape& shape);
// Copies an array between strided places; strides in bytes, by dimension.
void CopyStrided(void* target, const hlo::Dimensions& target_strides, const void* source,
                 const hlo::Dimensions& source_strides, const hlo::Shape& shape);

// Throws for negative sizes and for more bytes than an int64 counts.
hlo::Shape ShapeFrom(PJRT_Buffer_Type type, const int64_t* dims, size_t num_dims);
}  // namespace pjrt::boundary
