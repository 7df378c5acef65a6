// How the arguments of an operator become operands and attributes of what is recorded (op.h).
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/IListRef.h>

#include <complex>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "aten/dtype.h"
#include "aten/lowering.h"
#include "aten/tensor.h"
#include "lazy/device.h"
#include "lazy/node.h"
#include "lazy/op.h"
#include "process/fork.h"

namespace torch_xla {

// A Python or C++ number that changes from call to call without a recompile: in the lowering a
// rank-0 value (s64 for integers, pred for bools, else f32, or f64 and complex where the first
// tensor operand or the number is so). In Record, pass an at::Scalar or a Number of an explicit
// type.
using lazy::Scalar;
struct Number {
  at::Scalar value;
  ElementType type;
};

// Attribute that holds a number which shapes the code (a pow exponent): baked into the graph.
using Constant = std::variant<bool, int64_t, double, std::complex<double>>;

// In which type eager's kernel reads a number: in that of the first tensor operand, or in the one
// that it computes in, f32 for floats of 16 bits.
enum class Fit { kOperand, kComputed };

// A parameter that is a Scalar or a Constant, refused as eager does when it is recorded where that
// type cannot hold it: "value cannot be converted to type c10::Half without overflow".
template <typename P, Fit fit>
struct Fitting : P {
  Fitting() = default;
  Fitting(P number) : P(std::move(number)) {}
};
using FittingScalar = Fitting<Scalar, Fit::kOperand>;
using FittingConstant = Fitting<Constant, Fit::kOperand>;
using ComputedScalar = Fitting<Scalar, Fit::kComputed>;
using ComputedConstant = Fitting<Constant, Fit::kComputed>;

// The same bits, as lazy/op.h has it of any attribute.
template <Fit fit>
bool SameAttribute(const Fitting<Constant, fit>& a, const Fitting<Constant, fit>& b) {
  return lazy::SameAttribute<bool, int64_t, double, std::complex<double>>(a, b);
}

namespace recording {

// What the operands say together: the device, and the type and rank that numbers and dimensions
// follow.
struct Context {
  // An operation passes the gate for forks once, and not at each of the locks that it takes.
  const process::NoFork no_fork{};
  const lazy::OperationKind* kind = nullptr;
  lazy::Device* device = nullptr;
  ElementType type = ElementType::kInvalid;
  int64_t rank = 0;
  int64_t position = 0;         // of the tensor argument being added, from 1
  bool lies_otherwise = false;  // an operand is not row-major
};

void NoteTensor(Context& context, const at::Tensor& tensor);
inline void Note(Context& context, const at::Tensor& tensor) { NoteTensor(context, tensor); }
inline void Note(Context& context, const lazy::Value& value) {
  if (context.type == ElementType::kInvalid) {
    context.type = value.shape().element_type();
    context.rank = value.shape().rank();
  }
}
template <typename T>
void Note(Context& context, const std::optional<T>& value) {
  if (value) Note(context, *value);
}
inline void Note(Context& context, at::TensorList tensors) {
  for (const at::Tensor& tensor : tensors) NoteTensor(context, tensor);
}
inline void Note(Context& context, const std::vector<at::Tensor>& tensors) {
  Note(context, at::TensorList(tensors));
}
inline void Note(Context& context, const at::ITensorListRef& tensors) {
  for (const at::Tensor& tensor : tensors) NoteTensor(context, tensor);
}
inline void Note(Context& context, const c10::List<std::optional<at::Tensor>>& tensors) {
  for (const std::optional<at::Tensor>& tensor : tensors) Note(context, tensor);
}
inline void Note(Context& context, const at::IOptTensorListRef& tensors) {
  for (const auto& tensor : tensors) {
    if (tensor.has_value()) NoteTensor(context, *tensor);
  }
}
template <typename T>
void Note(Context&, const T&) {}

// The element type in which a number is passed: its own kind, wide enough for the first operand.
ElementType NumberType(const at::Scalar& scalar, ElementType operand);

// --- Operands

lazy::Value ToOperand(Context& context, const at::Tensor& tensor);
inline lazy::Value ToOperand(Context& context, const lazy::Value& value) {
  ++context.position;
  return value;
}
inline lazy::Value ToOperand(Context& context, const at::Scalar& scalar) {
  return ScalarValue(scalar, NumberType(scalar, context.type));
}
// The type that eager computes in: f32 for floats of 16 bits.
ElementType ComputedType(ElementType type);

// Throws, as eager does, if the number does not fit into the type.
void CheckFits(const Number& number);
void CheckFits(const Context& context, Fit fit, const at::Scalar& number);
inline void CheckFits(const Context&, Fit, const Number&) {}  // where it becomes an operand
template <typename T>
void CheckFits(const Context& context, Fit fit, const std::optional<T>& number) {
  if (number) CheckFits(context, fit, *number);
}
inline lazy::Value ToOperand(Context&, const Number& number) {
  CheckFits(number);
  return ScalarValue(number.value, number.type);
}

template <typename P>
struct Add;
template <>
struct Add<Value> {
  template <typename T>
  static void To(lazy::OperandList& out, Context& context, const T& value) {
    out.Add(ToOperand(context, value));
  }
};
template <>
struct Add<Scalar> : Add<Value> {};
template <>
struct Add<lazy::Index> {
  static void To(lazy::OperandList& out, Context&, int64_t index) {
    out.Add({lazy::Node::MakeIndex(index), 0});
  }
};
template <>
struct Add<std::vector<lazy::Index>> {
  static void To(lazy::OperandList& out, Context&, at::IntArrayRef indices) {
    for (int64_t index : indices) out.Add({lazy::Node::MakeIndex(index), 0});
    out.AddCount(static_cast<uint32_t>(indices.size()));
  }
};
template <>
struct Add<std::optional<Value>> {
  static bool IsAbsent(const at::Tensor& tensor) { return !tensor.defined(); }
  static bool IsAbsent(const at::Scalar&) { return false; }
  static bool IsAbsent(const Number&) { return false; }
  static bool IsAbsent(const lazy::Value& value) { return !value; }
  static void To(lazy::OperandList& out, Context&, std::nullopt_t) { out.AddCount(0); }
  template <typename T>
  static void To(lazy::OperandList& out, Context& context, const T& value) {
    bool absent = IsAbsent(value);
    out.AddCount(absent ? 0 : 1);
    if (!absent) out.Add(ToOperand(context, value));
  }
  template <typename T>
  static void To(lazy::OperandList& out, Context& context, const std::optional<T>& value) {
    if (value)
      To(out, context, *value);
    else
      out.AddCount(0);
  }
};
template <>
struct Add<std::optional<Scalar>> : Add<std::optional<Value>> {};
template <Fit fit>
struct Add<Fitting<Scalar, fit>> {
  template <typename T>
  static void To(lazy::OperandList& out, Context& context, const T& number) {
    CheckFits(context, fit, number);
    Add<Scalar>::To(out, context, number);
  }
};
template <>
struct Add<std::vector<Value>> {
  template <typename T>
  static void To(lazy::OperandList& out, Context& context, const T& list) {
    uint32_t count = 0;
    for (const auto& value : list) {
      out.Add(ToOperand(context, value));
      ++count;
    }
    out.AddCount(count);
  }
};
template <>
struct Add<std::vector<std::optional<Value>>> {
  template <typename T>
  static void To(lazy::OperandList& out, Context& context, const T& list) {
    out.AddCount(static_cast<uint32_t>(list.size()));
    for (const auto& entry : list) {
      const std::optional<at::Tensor> value = [&]() -> std::optional<at::Tensor> {
        if constexpr (requires { entry.has_value(); }) {
          if (!entry.has_value()) return std::nullopt;
          return *entry;
        } else {
          return static_cast<std::optional<at::Tensor>>(entry);
        }
      }();
      bool present = value && value->defined();
      out.AddCount(present ? 1 : 0);
      if (present) out.Add(ToOperand(context, *value));
    }
  }
};

// --- Attributes

template <typename P>
struct AttributeFrom {
  template <typename T>
  static P Make(const Context&, const T& value) {
    if constexpr (std::is_convertible_v<T, P>) {
      return static_cast<P>(value);
    } else if constexpr (std::is_same_v<T, at::Scalar> && std::is_arithmetic_v<P>) {
      return value.template to<P>();
    } else {
      return P(value);
    }
  }
};
template <>
struct AttributeFrom<ElementType> {
  static ElementType Make(const Context&, at::ScalarType type) { return ToElementType(type); }
  static ElementType Make(const Context&, ElementType type) { return type; }
};
template <>
struct AttributeFrom<Dimensions> {
  static Dimensions Make(const Context&, at::IntArrayRef sizes) { return sizes.vec(); }
};
template <>
struct AttributeFrom<Dimension> {
  static Dimension Make(const Context& context, int64_t dimension) {
    return {c10::maybe_wrap_dim(dimension, context.rank)};
  }
};
template <>
struct AttributeFrom<Constant> {
  static Constant Make(const Context&, const at::Scalar& scalar) {
    if (scalar.isBoolean()) return scalar.toBool();
    if (scalar.isIntegral(false)) return scalar.toLong();
    if (scalar.isComplex()) return std::complex<double>(scalar.toComplexDouble());
    return scalar.toDouble();
  }
  template <typename T>
    requires std::is_arithmetic_v<T>
  static Constant Make(const Context&, T value) {
    return value;
  }
};
template <Fit fit>
struct AttributeFrom<Fitting<Constant, fit>> {
  static Constant Make(const Context& context, const at::Scalar& number) {
    CheckFits(context, fit, number);
    return AttributeFrom<Constant>::Make(context, number);
  }
};
template <typename P>
struct AttributeFrom<std::optional<P>> {
  static std::optional<P> Make(const Context&, std::nullopt_t) { return std::nullopt; }
  template <typename T>
  static std::optional<P> Make(const Context& context, const T& value) {
    if constexpr (requires {
                    value.has_value();
                    *value;
                  }) {
      if (!value.has_value()) return std::nullopt;
      return AttributeFrom<P>::Make(context, *value);
    } else {
      return AttributeFrom<P>::Make(context, value);
    }
  }
};

}  // namespace recording

}  // namespace torch_xla

namespace lazy {

template <torch_xla::Fit fit>
struct ParameterTraits<torch_xla::Fitting<Scalar, fit>> : ParameterTraits<Scalar> {};

}  // namespace lazy
