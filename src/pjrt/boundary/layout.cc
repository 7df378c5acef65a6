#include "pjrt/boundary/layout.h"

#include <cstring>
#include <utility>

#include "pjrt/boundary/boundary.h"
#include "pjrt/element_type.h"

namespace pjrt::boundary {

std::vector<int64_t> RowMajor(int64_t rank) {
  std::vector<int64_t> minor_to_major(rank);
  for (int64_t i = 0; i < rank; ++i) minor_to_major[i] = rank - 1 - i;
  return minor_to_major;
}

std::string LayoutText(int64_t rank) {
  std::string text = "{";
  for (int64_t dimension : RowMajor(rank)) {
    if (text.size() > 1) text += ',';
    text += std::to_string(dimension);
  }
  return text + "}";
}

PJRT_Buffer_MemoryLayout DenseLayout(const std::vector<int64_t>& minor_to_major) {
  PJRT_Buffer_MemoryLayout layout{};
  layout.struct_size = PJRT_STRUCT_SIZE(PJRT_Buffer_MemoryLayout, type);
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = PJRT_STRUCT_SIZE(PJRT_Buffer_MemoryLayout_Tiled, num_tiles);
  layout.tiled.minor_to_major = minor_to_major.data();
  layout.tiled.minor_to_major_size = minor_to_major.size();
  return layout;
}

hlo::Dimensions RowMajorByteStrides(const hlo::Shape& shape) {
  hlo::Dimensions strides = hlo::RowMajorStrides(shape.dimensions());
  for (int64_t& stride : strides) stride *= hlo::ByteWidth(shape.element_type());
  return strides;
}

namespace {

hlo::Dimensions TiledByteStrides(const PJRT_Buffer_MemoryLayout_Tiled& tiled,
                                 const hlo::Shape& shape) {
  if (tiled.num_tiles != 0) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented, "tiled layouts are not supported");
  }
  const int64_t rank = shape.rank();
  hlo::Dimensions strides(rank, -1);
  int64_t stride = hlo::ByteWidth(shape.element_type());
  for (size_t i = 0; i < tiled.minor_to_major_size; ++i) {
    const int64_t dimension = tiled.minor_to_major[i];
    if (dimension < 0 || dimension >= rank || strides[dimension] >= 0) break;
    strides[dimension] = stride;
    stride *= shape.dimension(dimension);
  }
  for (int64_t s : strides) {
    if (s < 0 || static_cast<int64_t>(tiled.minor_to_major_size) != rank) {
      throw hlo::Error("the layout's minor_to_major is no permutation of the dimensions of " +
                       shape.ToString());
    }
  }
  return strides;
}

}  // namespace

bool SameStrides(const hlo::Dimensions& a, const hlo::Dimensions& b, const hlo::Shape& shape) {
  if (shape.num_elements() == 0) return true;
  for (int64_t i = 0; i < shape.rank(); ++i) {
    if (shape.dimension(i) != 1 && a[i] != b[i]) return false;
  }
  return true;
}

namespace {

struct StridedCopy {
  const hlo::Dimensions& dimensions;
  const hlo::Dimensions& target_strides;
  const hlo::Dimensions& source_strides;
  int64_t width;

  void Run(char* target, const char* source, size_t dimension) const {
    if (dimension == dimensions.size()) {
      std::memcpy(target, source, width);
      return;
    }
    const int64_t target_stride = target_strides[dimension];
    const int64_t source_stride = source_strides[dimension];
    const int64_t size = dimensions[dimension];
    if (dimension + 1 == dimensions.size() && target_stride == width && source_stride == width) {
      std::memcpy(target, source, size * width);
      return;
    }
    for (int64_t i = 0; i < size; ++i) {
      Run(target + i * target_stride, source + i * source_stride, dimension + 1);
    }
  }
};

}  // namespace

hlo::Dimensions ByteStrides(const PJRT_Buffer_MemoryLayout* layout, const hlo::Shape& shape) {
  if (layout == nullptr) return RowMajorByteStrides(shape);
  const PJRT_Buffer_MemoryLayout complete = Complete(*layout);
  if (complete.type == PJRT_Buffer_MemoryLayout_Type_Tiled) {
    return TiledByteStrides(complete.tiled, shape);
  }
  const auto& strides = complete.strides;
  if (static_cast<int64_t>(strides.num_byte_strides) != shape.rank()) {
    throw hlo::Error("the layout has " + std::to_string(strides.num_byte_strides) +
                     " strides for " + shape.ToString());
  }
  return hlo::Dimensions(strides.byte_strides, strides.byte_strides + strides.num_byte_strides);
}

void CheckRowMajor(const PJRT_Buffer_MemoryLayout* layout, const hlo::Shape& shape) {
  if (layout == nullptr) return;
  if (!SameStrides(ByteStrides(layout, shape), RowMajorByteStrides(shape), shape)) {
    throw hlo::Error(
        hlo::ErrorCode::kUnimplemented,
        "buffers of " + shape.ToString() + " have the dense row-major layout only, on this device");
  }
}

void CopyStrided(void* target, const hlo::Dimensions& target_strides, const void* source,
                 const hlo::Dimensions& source_strides, const hlo::Shape& shape) {
  if (shape.num_elements() == 0) return;
  const hlo::Dimensions dense = RowMajorByteStrides(shape);
  if (SameStrides(target_strides, dense, shape) && SameStrides(source_strides, dense, shape)) {
    std::memcpy(target, source, shape.byte_size());
    return;
  }
  const auto width = static_cast<int64_t>(hlo::ByteWidth(shape.element_type()));
  StridedCopy{shape.dimensions(), target_strides, source_strides, width}.Run(
      static_cast<char*>(target), static_cast<const char*>(source), 0);
}

hlo::Shape ShapeFrom(PJRT_Buffer_Type type, const int64_t* dims, size_t num_dims) {
  hlo::Dimensions dimensions(dims, dims + num_dims);
  int64_t bytes = hlo::ByteWidth(ToElementType(type));
  bool empty = false;
  for (int64_t size : dimensions) {
    if (size < 0) {
      throw hlo::Error("dimensions " + hlo::ToString(dimensions) + " must not be negative");
    }
    empty |= size == 0;
    if (!empty && __builtin_mul_overflow(bytes, size, &bytes)) {
      throw hlo::Error(hlo::ErrorCode::kResourceExhausted,
                       "an array of dimensions " + hlo::ToString(dimensions) + " is too large");
    }
  }
  return hlo::Shape(ToElementType(type), std::move(dimensions));
}

}  // namespace pjrt::boundary
