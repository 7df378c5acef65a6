#include "pjrt/boundary/buffer_description.h"

#include <utility>

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/extensions.h"
#include "pjrt/boundary/functions.h"
#include "pjrt/boundary/layout.h"
#include "pjrt/element_type.h"

namespace pjrt::boundary {
namespace {

const BufferDescription& Get(const PJRT_Buffer* buffer) {
  return DescriptionOf(Require(buffer, "buffer"));
}

}  // namespace

BufferDescription::BufferDescription(hlo::Shape described)
    : shape(std::move(described)), minor_to_major(RowMajor(shape.rank())) {}

bool HasRoom(PJRT_Buffer_ToHostBuffer_Args& args, const hlo::Shape& shape) {
  const auto needed = static_cast<size_t>(shape.byte_size());
  if (args.dst == nullptr) {
    args.dst_size = needed;
    return false;
  }
  if (args.dst_size < needed) {
    throw hlo::Error("reading " + shape.ToString() + " needs " + std::to_string(needed) +
                     " bytes of room, but there are " + std::to_string(args.dst_size));
  }
  return true;
}

void Buffer_ElementType(PJRT_Buffer_ElementType_Args& args) {
  args.type = ToBufferType(Get(args.buffer).shape.element_type());
}

void Buffer_Dimensions(PJRT_Buffer_Dimensions_Args& args) {
  const hlo::Dimensions& dimensions = Get(args.buffer).shape.dimensions();
  args.dims = dimensions.data();
  args.num_dims = dimensions.size();
}

void Buffer_UnpaddedDimensions(PJRT_Buffer_UnpaddedDimensions_Args& args) {
  const hlo::Dimensions& dimensions = Get(args.buffer).shape.dimensions();
  args.unpadded_dims = dimensions.data();
  args.num_dims = dimensions.size();
}

void Buffer_DynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args& args) {
  Require(args.buffer, "buffer");
  args.dynamic_dim_indices = nullptr;
  args.num_dynamic_dims = 0;
}

void Buffer_GetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args& args) {
  args.layout = DenseLayout(Get(args.buffer).minor_to_major);
}

void Buffer_OnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args& args) {
  args.on_device_size_in_bytes = Get(args.buffer).shape.byte_size();
}

void BufferLayout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args& args) {
  args.layout = new PJRT_Layouts_MemoryLayout{LayoutText(Get(args.buffer).shape.rank())};
}

}  // namespace pjrt::boundary
