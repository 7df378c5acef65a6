#include "aten/promotion.h"

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

ElementType ResultType(const Values& operands) {
  ElementType tensors = ElementType::kInvalid, scalars = tensors;
  for (Value operand : operands) {
    ElementType& joined = operand->shape().rank() == 0 ? scalars : tensors;
    joined = Join(joined, operand->element_type());
  }
  return Prefer(tensors, scalars);
}

void PromoteAll(Builder& b, Values& xs) {
  ElementType type = ResultType(xs);
  for (Value& x : xs) x = b.Convert(x, type);
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
