// Element-wise operations and conversions.
#include <algorithm>
#include <numeric>

#include "hlo/error.h"
#include "random_generator.h"

namespace fuzz {
namespace {

#define FUZZ_OPCODE(name, ...) Opcode::name,
constexpr Opcode kUnary[] = {HLO_ELEMENTWISE_UNARY_OPCODES(FUZZ_OPCODE)};
constexpr Opcode kBinary[] = {HLO_ELEMENTWISE_BINARY_OPCODES(FUZZ_OPCODE)};
#undef FUZZ_OPCODE

}  // namespace

void Generator::Source() { Push(Like(Shape(AnyType(), AnyDimensions()))); }

void Generator::Unary() {
  const Opcode opcode = kUnary[bytes_.Below(std::size(kUnary))];
  Value x = Any();
  try {
    Push(b_.Unary(opcode, x));
  } catch (const hlo::Error&) {
    Push(b_.Unary(opcode, To(x, AnyFloat())));
  }
}

void Generator::Binary() {
  Value x = Any();
  Value y = Like(x->shape());
  if (bytes_.Chance(64)) std::swap(x, y);
  constexpr Opcode kFrequent[] = {Opcode::kAdd, Opcode::kMultiply, Opcode::kSubtract,
                                  Opcode::kMaximum};
  const Opcode opcode = bytes_.Chance(128) ? kFrequent[bytes_.Below(std::size(kFrequent))]
                                           : kBinary[bytes_.Below(std::size(kBinary))];
  // The remainder of complex numbers means nothing.
  if (opcode == Opcode::kRemainder && hlo::IsComplex(x->element_type())) return;
  Push(b_.Binary(opcode, x, y));
}

void Generator::Choose() {
  Value x = Any();
  Value y = Like(x->shape());
  switch (bytes_.Below(4)) {
    case 0:
      return Push(b_.Clamp(ScalarOrLike(x), x, ScalarOrLike(x)));
    case 1:
      return Push(b_.Compare(x, y, static_cast<hlo::ComparisonDirection>(bytes_.Below(6)),
                             hlo::IsFloat(x->element_type()) && bytes_.Chance(40)
                                 ? hlo::ComparisonType::kTotalOrder
                                 : hlo::ComparisonType::kNotype));
    case 2:
      if (bytes_.Chance(60)) {
        return Push(b_.Select(Like(Shape::Scalar(ElementType::kPred)), x, y));
      }
      return Push(b_.Select(Like(x->shape().WithElementType(ElementType::kPred)), x, y));
    default:
      return Push(
          b_.Select(b_.Compare(x, y, static_cast<hlo::ComparisonDirection>(bytes_.Below(6))),
                    Like(x->shape()), x));
  }
}

Value Generator::ScalarOrLike(Value x) {
  return Like(bytes_.Chance(128) ? Shape::Scalar(x->element_type()) : x->shape());
}

void Generator::Convert() {
  if (bytes_.Chance(40)) {
    return Push(b_.ReducePrecision(To(Any(), AnyFloat()), 1 + bytes_.Below(11), bytes_.Below(24)));
  }
  Push(To(Any(), AnyType()));
}

void Generator::BitcastConvert() {
  Value x = Any();
  const int width = hlo::BitWidth(x->element_type());
  ElementType type = AnyType();
  for (int i = 0; i < 4 && hlo::BitWidth(type) != width; ++i) type = AnyType();
  // The bits of a number are as uncertain as its last place.
  if (!hlo::IsInteger(x->element_type()) && !bytes_.Chance(20)) return Convert();
  Push(b_.BitcastConvert(x, type));
}

}  // namespace fuzz
