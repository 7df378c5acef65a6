// A wrong call is refused in two readers' words: first in those that programs written for
// PyTorch/XLA look for, which name operands by type and shape and say what to change, then in
// eager's, which programs written for eager look for.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>

#include <string>

#include "aten/dtype.h"
#include "hlo/shape.h"

namespace torch_xla {

// Throws c10::Error (RuntimeError in Python). Not to be called where eager raises another type.
template <typename... Words>
[[noreturn]] void Refuse(const std::string& eager, const Words&... words) {
  TORCH_CHECK(false, words..., "\nException raised from eager's check: ", eager);
}

// As it is named in such words: "f32[2,3]".
inline std::string Described(const at::Tensor& tensor) {
  return hlo::Shape(ToElementType(tensor.scalar_type()), tensor.sizes().vec()).ToString();
}

}  // namespace torch_xla
