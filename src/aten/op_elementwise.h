// Recording an element-wise operation: its operands are promoted and stretched as TensorIterator
// does it (op.h).
#pragma once

#include <ATen/ATen.h>
#include <c10/core/DefaultDtype.h>

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "aten/layout.h"
#include "aten/lowering.h"
#include "aten/op_record.h"
#include "aten/tensor.h"
#include "lazy/op.h"

namespace torch_xla {

// How an element-wise operator treats dtypes, as TensorIterator's configurations.
enum class Promotion {
  kDefault,  // computes and returns the operands' common type
  kToFloat,  // the same; integers and bools compute and return the default float type
  kCompare,  // computes in the common type, returns bool
  kToReal,   // computes in the common type, returns the lowering's own type (abs, real)
  kNone,     // values arrive in their own types; returns what the lowering returns
};

namespace recording {

// What element-wise recording adds to a lowering's parameters.
struct ElementwiseAttributes {
  uint32_t numbers = 0;  // bit i: operand i (of those that promote) is a Python number
  ElementType target = ElementType::kInvalid;  // in place: the type to return
  at::ScalarType default_type = at::kFloat;    // torch.get_default_dtype()
  bool operator==(const ElementwiseAttributes&) const = default;
  uint64_t Hash() const {
    return (numbers * 64 + static_cast<uint64_t>(target)) * 64 +
           static_cast<uint64_t>(default_type);
  }
};

// The common type and shape of the operands that a lowering collects.
class ElementwiseOperands {
 public:
  ElementwiseOperands(Builder& b, Promotion promotion, const ElementwiseAttributes& attributes)
      : b_(b), promotion_(promotion), attributes_(attributes) {}
  void Collect(Value value);
  void Collect(const std::optional<Value>& value) {
    if (value) Collect(*value);
  }
  template <typename T>
  void Collect(const T&) {}
  void Decide();
  Value Prepare(Value value);
  std::optional<Value> Prepare(const std::optional<Value>& value) {
    return value ? std::optional<Value>(Prepare(*value)) : std::nullopt;
  }
  Scalar Prepare(const Scalar& scalar);
  std::optional<Scalar> Prepare(const std::optional<Scalar>& scalar) {
    return scalar ? std::optional<Scalar>(Prepare(*scalar)) : std::nullopt;
  }
  template <Fit fit>
  Fitting<Scalar, fit> Prepare(const Fitting<Scalar, fit>& scalar) {
    return Prepare(static_cast<const Scalar&>(scalar));
  }
  template <typename T>
  const T& Prepare(const T& attribute) {
    return attribute;
  }
  Value Finish(Value result);

 private:
  Builder& b_;
  Promotion promotion_;
  const ElementwiseAttributes& attributes_;
  std::vector<Value> values_;
  ElementType common_ = ElementType::kInvalid;   // what torch's rules say
  ElementType compute_ = ElementType::kInvalid;  // wide enough to compute in
  Dimensions dimensions_;
};

// f between the operands' preparation and the result's.
template <typename F, typename... P>
Value LowerElementwise(Builder& b, F f, Promotion promotion,
                       const ElementwiseAttributes& attributes, const P&... parameters) {
  ElementwiseOperands operands(b, promotion, attributes);
  (operands.Collect(parameters), ...);
  operands.Decide();
  return operands.Finish(f(b, operands.Prepare(parameters)...));
}

template <auto f, Promotion promotion, typename List>
struct Elementwise;
template <auto f, Promotion promotion, typename... P>
struct Elementwise<f, promotion, lazy::TypeList<P...>> {
  static Value Lower(Builder& b, P... parameters, ElementwiseAttributes attributes) {
    return LowerElementwise(b, f, promotion, attributes, parameters...);
  }
};

template <auto f, Promotion promotion>
using ElementwiseOf =
    Elementwise<f, promotion, typename lazy::LoweringTraits<decltype(f)>::Parameters>;

// A tensor of rank 0 as a number that promotes as Python's do.
at::Tensor WrappedNumber(const at::Tensor& number);

// Bit of each operand that promotes, if the argument for it is a number.
bool IsNumber(const at::Tensor& tensor);
inline bool IsNumber(const at::Scalar&) { return true; }
inline bool IsNumber(const Number&) { return true; }
template <typename T>
bool IsNumber(const std::optional<T>& value) {
  return value && IsNumber(*value);
}
template <typename T>
bool IsNumber(const T&) {
  return false;
}
template <typename T>
bool IsPresent(const T& value) {
  if constexpr (requires { value.has_value(); }) {
    if (!value.has_value()) return false;
    if constexpr (std::is_same_v<T, std::optional<at::Tensor>>) return value->defined();
  }
  return true;
}
template <typename... P, typename... Arguments>
uint32_t NumberMask(lazy::TypeList<P...>, const Arguments&... arguments) {
  uint32_t mask = 0, bit = 1;
  auto add = [&](bool promotes, bool present, bool number) {
    if (!promotes || !present) return;
    if (number) mask |= bit;
    bit <<= 1;
  };
  (add(std::is_same_v<P, Value> || std::is_same_v<P, std::optional<Value>>, IsPresent(arguments),
       IsNumber(arguments)),
   ...);
  return mask;
}

template <auto f, Promotion promotion>
auto& ElementwiseFamily() {
  return lazy::Op<&ElementwiseOf<f, promotion>::Lower>::family();
}

// `family` of a lowering whose last parameter is what the element-wise ones have in addition.
template <typename F, typename... Arguments>
lazy::Value RecordElementwiseValue(Context& context, lazy::OperationFamily<F>& family,
                                   ElementType target, const Arguments&... arguments) {
  using Parameters = typename lazy::LoweringTraits<F>::Parameters;
  ElementwiseAttributes attributes{.target = target,
                                   .default_type = c10::get_default_dtype_as_scalartype()};
  attributes.numbers = NumberMask(Parameters(), arguments..., attributes);
  return {RecordNode(context, family, Parameters(), arguments..., attributes), 0};
}

void CheckInPlaceShape(const at::Tensor& self, const lazy::Value& result);

// Throws if `self`, which is written in place, shares a part of its memory with what is read.
void CheckReads(const at::Tensor& self, const at::Tensor& read);
inline void CheckReads(const at::Tensor& self, const std::optional<at::Tensor>& read) {
  if (read) CheckReads(self, *read);
}
template <typename T>
void CheckReads(const at::Tensor&, const T&) {}

// What RecordElementwise and RecordElementwiseInto do, for all lowerings of a type.
template <typename F, typename... Arguments>
at::Tensor RecordElementwiseWith(lazy::OperationFamily<F>& family, const Arguments&... arguments) {
  Context context;
  auto value = RecordElementwiseValue(context, family, ElementType::kInvalid, arguments...);
  at::Tensor result = MakeTensor(context.device, std::move(value));
  if (context.lies_otherwise) [[unlikely]] {
    Operands operands;
    (AddTensors(operands, arguments), ...);
    LayOutElementwise(context.kind->name, result, operands,
                      (std::is_same_v<Arguments, at::Scalar> || ...));
  }
  return result;
}
template <typename F, typename... Arguments>
at::Tensor& RecordElementwiseIntoWith(lazy::OperationFamily<F>& family, at::Tensor& self,
                                      const Arguments&... arguments) {
  Context context;
  Note(context, self);
  ElementType target = ToElementType(self.scalar_type());
  auto value = RecordElementwiseValue(context, family, target, arguments...);
  CheckInPlaceShape(self, value);
  (CheckReads(self, arguments), ...);
  WriteInto(self, value);
  return self;
}

}  // namespace recording

}  // namespace torch_xla
