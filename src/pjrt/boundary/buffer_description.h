// What is told of a buffer, whose array transfers deliver dense and row-major.
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/shape.h"
#include "pjrt/c_api.h"

namespace pjrt::boundary {

struct BufferDescription {
  explicit BufferDescription(hlo::Shape shape);
  const hlo::Shape shape;
  const std::vector<int64_t> minor_to_major;
};

// Each plugin says where its buffers keep it.
const BufferDescription& DescriptionOf(const PJRT_Buffer& buffer);

// False if the caller of ToHostBuffer asks for the size alone, which it then gets. Throws if there
// is too little room.
bool HasRoom(PJRT_Buffer_ToHostBuffer_Args& args, const hlo::Shape& shape);

}  // namespace pjrt::boundary
