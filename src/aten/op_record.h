// Recording one operation, and what its results are as tensors (op.h).
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "aten/layout.h"
#include "aten/op_arguments.h"
#include "aten/tensor.h"
#include "hlo/error.h"
#include "lazy/op.h"

namespace torch_xla {
namespace recording {

// --- Results

inline at::Tensor WrapResult(lazy::Device* device, const lazy::Reference<lazy::Node>& node,
                             uint32_t index) {
  if (node->shape(index) == nullptr) return at::Tensor();
  return MakeTensor(device, {node, index});
}
template <typename R>
struct Wrap;
template <>
struct Wrap<Value> {
  static at::Tensor From(lazy::Device* device, const lazy::Reference<lazy::Node>& node) {
    return WrapResult(device, node, 0);
  }
};
template <>
struct Wrap<std::vector<Value>> {
  static std::vector<at::Tensor> From(lazy::Device* device,
                                      const lazy::Reference<lazy::Node>& node) {
    std::vector<at::Tensor> out;
    uint32_t count = static_cast<uint32_t>(node->operation()->result_shapes().size());
    for (uint32_t i = 0; i < count; ++i) out.push_back(WrapResult(device, node, i));
    return out;
  }
};
template <size_t... i>
auto WrapTuple(lazy::Device* device, const lazy::Reference<lazy::Node>& node,
               std::index_sequence<i...>) {
  return std::make_tuple(WrapResult(device, node, static_cast<uint32_t>(i))...);
}
template <size_t n>
struct Wrap<std::array<Value, n>> {
  static auto From(lazy::Device* device, const lazy::Reference<lazy::Node>& node) {
    return WrapTuple(device, node, std::make_index_sequence<n>());
  }
};
template <typename... T>
struct Wrap<std::tuple<T...>> : Wrap<std::array<Value, sizeof...(T)>> {};
template <>
struct Wrap<std::pair<Value, Value>> : Wrap<std::array<Value, 2>> {};

// --- Recording

[[noreturn]] void ThrowNoDevice(std::string_view op);

// An argument goes where its parameter says: to the operands, or to its place among the attributes.
template <typename P, size_t attribute, typename Attributes, typename T>
void Take(lazy::OperandList& operands, Attributes& attributes, Context& context, const T& value) {
  if constexpr (lazy::kIsOperand<P>) {
    Add<P>::To(operands, context, value);
  } else {
    std::get<attribute>(attributes) = AttributeFrom<P>::Make(context, value);
  }
}

// By the lowering's type, as the family is, so that it is compiled once for all lowerings of one
// type.
template <typename F, typename... P, typename... Arguments>
lazy::Reference<lazy::Node> RecordNode(Context& context, lazy::OperationFamily<F>& family,
                                       lazy::TypeList<P...> list, const Arguments&... arguments) {
  static_assert(sizeof...(P) == sizeof...(Arguments),
                "one argument for each parameter of the lowering after the builder");
  context.kind = &family.kind();
  (Note(context, arguments), ...);
  if (context.device == nullptr) ThrowNoDevice(context.kind->name);
  lazy::OperandList operands;
  typename lazy::LoweringTraits<F>::Attributes attributes{};
  [&]<size_t... i>(std::index_sequence<i...>) {
    (Take<P, lazy::AttributesBefore(i, list)>(operands, attributes, context, arguments), ...);
  }(std::index_sequence_for<P...>());
  try {
    return family.Record(operands, attributes);
  } catch (const hlo::Error& error) {
    RethrowAsTorchError(error, context.kind->name);
  }
}

// The tensors on xla, or of no dimension, among arguments.
inline void AddTensors(Operands& out, const at::Tensor& tensor) {
  if (tensor.defined()) out.push_back(&tensor);
}
inline void AddTensors(Operands& out, const std::optional<at::Tensor>& tensor) {
  if (tensor) AddTensors(out, *tensor);
}
inline void AddTensors(Operands& out, at::TensorList tensors) {
  for (const at::Tensor& tensor : tensors) AddTensors(out, tensor);
}
inline void AddTensors(Operands& out, const std::vector<at::Tensor>& tensors) {
  AddTensors(out, at::TensorList(tensors));
}
inline void AddTensors(Operands& out, const at::ITensorListRef& tensors) {
  for (const at::Tensor& tensor : tensors) AddTensors(out, tensor);
}
template <typename T>
void AddTensors(Operands&, const T&) {}

template <typename... T>
void AddTensors(Operands& out, const std::tuple<T...>& tensors) {
  std::apply([&](const T&... tensor) { (AddTensors(out, tensor), ...); }, tensors);
}

// What Record does, for all lowerings of a type.
template <typename F, typename... Arguments>
auto RecordWith(Context& context, lazy::OperationFamily<F>& family, const Arguments&... arguments) {
  using Traits = lazy::LoweringTraits<F>;
  auto node = RecordNode(context, family, typename Traits::Parameters(), arguments...);
  auto results = Wrap<typename Traits::Result>::From(context.device, node);
  if (context.lies_otherwise) [[unlikely]] {
    Operands operands, targets;
    (AddTensors(operands, arguments), ...);
    AddTensors(targets, results);
    LayOutResults(context.kind->name, targets, operands);
  }
  return results;
}

}  // namespace recording

}  // namespace torch_xla
