// Comparisons, predicates and choices by predicate.
#include "aten/broadcast.h"
#include "aten/elementwise.h"
#include "aten/fallback.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/small_forms.h"

namespace torch_xla {
namespace {

using hlo::ComparisonDirection;

template <ComparisonDirection direction>
Value Compare(Builder& b, Value x, Value y) {
  return b.Compare(x, y, direction);
}

template <Opcode opcode>
Value Logical(Builder& b, Value x, Value y) {
  return b.Binary(opcode, ToPred(b, x), ToPred(b, y));
}

Value LogicalNot(Builder& b, Value x) { return b.Not(ToPred(b, x)); }

Value IsInfinite(Builder& b, Value x) {
  if (IsIntegral(x)) return b.Full(x->shape().WithElementType(ElementType::kPred), int64_t{0});
  if (IsComplexValue(x)) return b.Or(IsInfinite(b, b.Real(x)), IsInfinite(b, b.Imag(x)));
  return b.Eq(b.Abs(x), Like(b, x, kInfinity));
}

template <bool positive>
Value IsSignedInfinity(Builder& b, Value x) {
  if (IsIntegral(x)) return b.Full(x->shape().WithElementType(ElementType::kPred), int64_t{0});
  return b.Eq(x, Like(b, x, positive ? kInfinity : -kInfinity));
}

Value Where(Builder& b, Value condition, Value x, Value y) {
  Values branches = {x, y};
  PromoteAll(b, branches);
  Values all = {condition, branches[0], branches[1]};
  const Dimensions dimensions = ElementwiseDimensions(all);
  for (Value& value : all) value = b.BroadcastTo(value, dimensions);
  return b.Select(ToPred(b, all[0]), all[1], all[2]);
}

at::Tensor WhereOf(const at::Tensor& condition, const at::Tensor& x, const at::Tensor& y) {
  if (condition.scalar_type() == at::kByte) {
    TORCH_WARN_ONCE(
        "where received a uint8 condition tensor. This behavior is deprecated and will be removed "
        "in a future version of PyTorch. Use a boolean condition instead.");
  }
  TORCH_CHECK(condition.scalar_type() == at::kByte || condition.scalar_type() == at::kBool,
              "where expected condition to be a boolean tensor, but got a tensor with dtype ",
              condition.scalar_type());
  return Record<&Where>(condition, x, y);
}

// `value` takes x's type; the mask may stretch x.
Value MaskedFill(Builder& b, Value x, Value mask, Value value) {
  if (!IsPred(mask))
    throw hlo::Error("masked_fill_ only supports boolean masks, but got mask with dtype " +
                     std::string(hlo::ShortName(mask->element_type())));
  if (!value->dimensions().empty()) {
    throw hlo::Error(
        "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with " +
        std::to_string(value->shape().rank()) + " dimension(s).");
  }
  if (IsComplexValue(value) && !IsComplexValue(x)) {
    throw hlo::Error("value cannot be converted to type " +
                     std::string(hlo::ShortName(x->element_type())) + " without overflow");
  }
  auto [full, full_mask] = Broadcast(b, x, mask);
  Value fill = b.BroadcastTo(b.Convert(value, x->element_type()), full->dimensions());
  return b.Select(full_mask, fill, full);
}
Value MaskedFillScalar(Builder& b, Value x, Value mask, Scalar value) {
  return MaskedFill(b, x, mask, value);
}

at::Tensor MaskedFillNumber(const at::Tensor& x, const at::Tensor& mask, const at::Scalar& value) {
  return Record<&MaskedFillScalar>(x, mask, Number{value, ToElementType(x.scalar_type())});
}

at::Tensor& MaskedFillNumberInPlace(at::Tensor& x, const at::Tensor& mask,
                                    const at::Scalar& value) {
  static const InPlaceOperator op("aten::masked_fill_");
  WriteInPlace(op, x, MaskedFillNumber(x, mask, value), {&mask});
  return x;
}

template <ComparisonDirection direction>
void RegisterComparison(torch::Library& m, const std::string& name,
                        const small_loops::CompareLoops& loops) {
  RegisterElementwise<&Compare<direction>, Promotion::kCompare>(m, (name + ".Tensor").c_str());
  RegisterElementwiseScalar<&Compare<direction>, Promotion::kCompare>(m,
                                                                      (name + ".Scalar").c_str());
  RunSmallComparisonBy<&Compare<direction>, Promotion::kCompare>(loops);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RegisterComparison<ComparisonDirection::kEq>(m, "eq", small_loops::kEqual);
  RegisterComparison<ComparisonDirection::kNe>(m, "ne", small_loops::kUnequal);
  RegisterComparison<ComparisonDirection::kLt>(m, "lt", small_loops::kLess);
  RegisterComparison<ComparisonDirection::kLe>(m, "le", small_loops::kLessOrEqual);
  RegisterComparison<ComparisonDirection::kGt>(m, "gt", small_loops::kGreater);
  RegisterComparison<ComparisonDirection::kGe>(m, "ge", small_loops::kGreaterOrEqual);
  RegisterElementwise<&Logical<Opcode::kAnd>, Promotion::kCompare>(m, "logical_and");
  RegisterElementwise<&Logical<Opcode::kOr>, Promotion::kCompare>(m, "logical_or");
  RegisterElementwise<&Logical<Opcode::kXor>, Promotion::kCompare>(m, "logical_xor");
  RegisterElementwise<&LogicalNot, Promotion::kCompare>(m, "logical_not");
  RegisterElementwise<&IsNan, Promotion::kCompare>(m, "isnan");
  RegisterElementwise<&IsInfinite, Promotion::kCompare>(m, "isinf");
  RegisterElementwise<&IsSignedInfinity<true>, Promotion::kCompare>(m, "isposinf");
  RegisterElementwise<&IsSignedInfinity<false>, Promotion::kCompare>(m, "isneginf");
  RegisterElementwise<&SignBit, Promotion::kCompare>(m, "signbit");
  recording::NameKind(lazy::Op<&Where>::kind(), "where");
  RunBy<&Where>(+[](const at::Tensor& condition, const at::Tensor& x, const at::Tensor& y) {
    at::Tensor chosen = ChooseOnHost(condition, x, y);
    return chosen.defined() ? chosen : at::where(condition, x, y);
  });
  m.impl("where.self", &WhereOf);
  Register<&MaskedFill>(m, "masked_fill.Tensor");
  recording::NameKind(lazy::Op<&MaskedFillScalar>::kind(), "masked_fill");
  RunBy<&MaskedFillScalar>(
      +[](const at::Tensor& x, const at::Tensor& mask, const at::Scalar& value) {
        at::Tensor filled = FillWhereOnHost(x, mask, value);
        return filled.defined() ? filled : at::masked_fill(x, mask, value);
      });
  m.impl("masked_fill.Scalar", &MaskedFillNumber);
  m.impl("masked_fill_.Scalar", &MaskedFillNumberInPlace);
}

}  // namespace torch_xla
