#include "aten/promotion.h"

#include <algorithm>

#include "aten/broadcast.h"

namespace torch_xla {
namespace {

enum Category { kBool, kIntegral, kFloating, kComplexNumber };

Category CategoryOf(ElementType type) {
  if (type == ElementType::kPred) return kBool;
  if (hlo::IsInteger(type)) return kIntegral;
  return hlo::IsComplex(type) ? kComplexNumber : kFloating;
}

ElementType PromoteIntegers(ElementType a, ElementType b) {
  if (hlo::IsSignedInteger(a) == hlo::IsSignedInteger(b)) {
    return hlo::BitWidth(a) >= hlo::BitWidth(b) ? a : b;
  }
  ElementType with_sign = hlo::IsSignedInteger(a) ? a : b;
  ElementType without = with_sign == a ? b : a;
  if (hlo::BitWidth(with_sign) > hlo::BitWidth(without)) return with_sign;
  switch (hlo::BitWidth(without)) {
    case 8:
      return ElementType::kS16;
    case 16:
      return ElementType::kS32;
    default:
      return ElementType::kS64;
  }
}

ElementType PromoteComplex(ElementType a, ElementType b) {
  auto is_wide = [](ElementType t) { return t == ElementType::kF64 || t == ElementType::kC128; };
  return is_wide(a) || is_wide(b) ? ElementType::kC128 : ElementType::kC64;
}

// Accumulates one class of operands; kInvalid is "none yet".
ElementType Join(ElementType a, ElementType b) {
  return a == ElementType::kInvalid ? b : PromoteTypes(a, b);
}

// The type of the class above, unless the class below has a higher category.
ElementType Prefer(ElementType above, ElementType below) {
  if (above == ElementType::kInvalid) return below;
  if (below == ElementType::kInvalid || CategoryOf(above) >= CategoryOf(below)) return above;
  // A complex operand below raises f64 to c128, not to its own width.
  if (CategoryOf(below) == kComplexNumber && hlo::IsFloat(above)) {
    return above == ElementType::kF64 ? ElementType::kC128 : ElementType::kC64;
  }
  return below;
}

// A number's own width does not count: integers are s64, reals f32, complex numbers c64.
ElementType NumberType(ElementType type) {
  switch (CategoryOf(type)) {
    case kBool:
      return ElementType::kPred;
    case kIntegral:
      return ElementType::kS64;
    case kFloating:
      return ElementType::kF32;
    case kComplexNumber:
      return ElementType::kC64;
  }
  return type;
}

std::pair<Value, Value> PromoteTo(Builder& b, Value x, Value y, ElementType type) {
  return Broadcast(b, b.Convert(x, type), b.Convert(y, type));
}

}  // namespace

ElementType PromoteTypes(ElementType a, ElementType b) {
  if (a == b) return a;
  Category ca = CategoryOf(a), cb = CategoryOf(b);
  if (ca == kComplexNumber || cb == kComplexNumber) return PromoteComplex(a, b);
  if (ca != cb) return ca > cb ? a : b;
  if (ca == kIntegral) return PromoteIntegers(a, b);
  if (hlo::BitWidth(a) == hlo::BitWidth(b)) return ElementType::kF32;
  return hlo::BitWidth(a) > hlo::BitWidth(b) ? a : b;
}

ElementType ResultType(std::initializer_list<Operand> operands) {
  ElementType tensors = ElementType::kInvalid, scalars = tensors, numbers = tensors;
  for (const Operand& operand : operands) {
    ElementType type = operand.value->element_type();
    if (operand.is_number) {
      numbers = Join(numbers, NumberType(type));
    } else if (operand.value->shape().rank() == 0) {
      scalars = Join(scalars, type);
    } else {
      tensors = Join(tensors, type);
    }
  }
  return Prefer(Prefer(tensors, scalars), numbers);
}

std::pair<Value, Value> Promote(Builder& b, Operand x, Operand y) {
  return PromoteTo(b, x.value, y.value, ResultType({x, y}));
}

std::pair<Value, Value> PromoteToFloat(Builder& b, Operand x, Operand y) {
  return PromoteTo(b, x.value, y.value, FloatType(ResultType({x, y})));
}

Values PromoteAll(Builder& b, std::initializer_list<Operand> operands) {
  ElementType type = ResultType(operands);
  Values values;
  for (const Operand& operand : operands) values.push_back(b.Convert(operand.value, type));
  BroadcastAll(b, values);
  return values;
}

ElementType FloatType(ElementType type) {
  return CategoryOf(type) <= kIntegral ? ElementType::kF32 : type;
}

Value ToFloat(Builder& b, Value x) { return b.Convert(x, FloatType(x->element_type())); }

ElementType AccumulationType(ElementType type) {
  bool is_half = type == ElementType::kF16 || type == ElementType::kBF16;
  return is_half ? ElementType::kF32 : type;
}

Value ToAccumulation(Builder& b, Value x) {
  return b.Convert(x, AccumulationType(x->element_type()));
}

ElementType SumType(ElementType type) {
  return CategoryOf(type) <= kIntegral ? ElementType::kS64 : type;
}

Value ToPred(Builder& b, Value x) { return IsPred(x) ? x : b.Ne(x, b.Zeros(x->shape())); }

}  // namespace torch_xla
