#include "aten/placeholder.h"

#include <utility>

#include "aten/dtype.h"
#include "aten/layout.h"
#include "aten/tensor.h"
#include "lazy/data.h"

namespace torch_xla {

lazy::Value PlaceholderValue(lazy::Device* device, lazy::ShapeRef shape) {
  lazy::Reference<lazy::Data> data(new lazy::Data(device, shape, nullptr));
  data->Drop();
  return {lazy::Node::MakeData(std::move(data), shape), 0};
}

at::Tensor Placeholder(lazy::Device* device, at::ScalarType type, c10::IntArrayRef sizes,
                       c10::IntArrayRef strides) {
  const lazy::SharedShape shape = lazy::InternShape(hlo::Shape(ToElementType(type), sizes.vec()));
  auto storage = lazy::Storage::Make(device, PlaceholderValue(device, shape.get()));
  if (IsDense(sizes, strides)) storage->set_memory_order(MemoryOrder(sizes, strides));
  return at::detail::make_tensor<XlaTensorImpl>(std::move(storage), lazy::Reference<lazy::View>(),
                                                type, sizes, strides, 0);
}

}  // namespace torch_xla
