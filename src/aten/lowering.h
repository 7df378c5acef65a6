// What every lowering is written with. A lowering is a plain function that says what an ATen
// operator means in HLO:
//
//   Value Softmax(Builder& b, Value x, int64_t dimension);
//
// Values carry dtype and shape; attributes are typed parameters; several results are a vector in
// the operator's order. StableHLO has no implicit broadcast and no promotion: broadcast.h,
// promotion.h and dimension.h hold torch's rules, each once. Errors are hlo::Error and become torch
// exceptions where the operator was called.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "hlo/builder.h"

namespace torch_xla {

using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;
using Values = std::vector<Value>;
using OptionalValue = std::optional<Value>;

// A constant in every element of `x`'s shape and type.
inline Value Like(Builder& b, Value x, double value) { return b.Full(x->shape(), value); }
// A scalar of x's type.
inline Value ScalarLike(Builder& b, Value x, double value) {
  return b.ConstantScalar(x->element_type(), value);
}
// `value` (a scalar) in every element of `dimensions`.
inline Value Splat(Builder& b, Value value, const Dimensions& dimensions) {
  return b.BroadcastInDim(value, dimensions, {});
}
inline Value Iota(Builder& b, const Dimensions& dimensions, int64_t dimension,
                  ElementType type = ElementType::kS64) {
  return b.Iota(Shape(type, dimensions), dimension);
}
// x along one dimension of a larger result: x's only dimension becomes `dimension`.
inline Value AlongDimension(Builder& b, Value x, const Dimensions& dimensions, int64_t dimension) {
  return b.BroadcastInDim(x, dimensions, {dimension});
}
// Of an operation's results, `count` from `first` on.
inline Values ResultsOf(Builder& b, Value operation, size_t first, size_t count) {
  Values results;
  for (size_t i = first; i < first + count; ++i) {
    results.push_back(b.Result(operation, static_cast<int64_t>(i)));
  }
  return results;
}
// What a value's elements are.
inline bool IsPred(Value x) { return x->element_type() == ElementType::kPred; }
inline bool IsFloatValue(Value x) { return hlo::IsFloat(x->element_type()); }
inline bool IsComplexValue(Value x) { return hlo::IsComplex(x->element_type()); }
inline bool IsIntegral(Value x) { return hlo::IsInteger(x->element_type()) || IsPred(x); }

// Attributes that record wraps against the rank of the first tensor operand, as eager does
// (IndexError when out of range): negative dimensions count from the end.
struct Dimension {
  int64_t value = 0;
  operator int64_t() const { return value; }
  bool operator==(const Dimension&) const = default;
  uint64_t Hash() const { return static_cast<uint64_t>(value); }
};

// The largest and smallest finite or infinite values that a reduction starts from.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace torch_xla
