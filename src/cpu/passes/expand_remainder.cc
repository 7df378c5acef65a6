#include "cpu/passes/engine_passes.h"

#include "cpu/control_flow.h"
#include "hlo/builder.h"
#include "passes/for_each_computation.h"

namespace cpu {
namespace {

using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using Value = Instruction*;

bool IsOfFloats(const hlo::Instruction& instruction) {
  const ElementType type = instruction.element_type();
  return instruction.opcode() == Opcode::kRemainder &&
         (type == ElementType::kF32 || type == ElementType::kF64) && instruction.shape().rank() > 0;
}

// Positive numbers as f64, and their quotient, which may have been rounded up to a whole number.
struct Division {
  Value dividend, divisor, quotient;
  Value whole;  // floor(quotient)
};

Division Divide(hlo::Builder& b, Value x, Value y) {
  const auto wide = [&](Value v) { return b.Unary(Opcode::kAbs, b.Convert(v, ElementType::kF64)); };
  Division d{wide(x), wide(y), nullptr, nullptr};
  d.quotient = b.Divide(d.dividend, d.divisor);
  d.whole = b.Unary(Opcode::kFloor, d.quotient);
  return d;
}

Value Number(hlo::Builder& b, const Division& d, double n) {
  return b.Full(d.dividend->shape(), n);
}

// 24 bits of an f32 times these are no more than an f64 has.
Value IsNearOfF32(hlo::Builder& b, const Division& d) {
  return b.Lt(d.quotient, Number(b, d, 0x1p28));
}
Value RestOfF32(hlo::Builder& b, const Division& d) {
  return b.Subtract(d.dividend, b.Multiply(d.whole, d.divisor));
}

// The divisor in two parts, of 27 bits and of 26, whose products with 26 bits are exact. What is
// left after the first has no more bits than an f64, either, so both differences are exact, too.
constexpr int64_t kUpperBits = ~int64_t{0} << 26;
Value IsNearOfF64(hlo::Builder& b, const Division& d) {
  // Where the quotient was rounded up, a product may be larger than the dividend.
  return b.And(b.Lt(d.quotient, Number(b, d, 0x1p26)), b.Lt(d.dividend, Number(b, d, 0x1p1023)));
}
Value RestOfF64(hlo::Builder& b, const Division& d) {
  Value bits = b.BitcastConvert(d.divisor, ElementType::kS64);
  Value upper = b.BitcastConvert(b.And(bits, b.Full(bits->shape(), kUpperBits)), ElementType::kF64);
  Value lower = b.Subtract(d.divisor, upper);
  return b.Subtract(b.Subtract(d.dividend, b.Multiply(d.whole, upper)), b.Multiply(d.whole, lower));
}

// x - floor(x / y) y of positive numbers, with the sign of the first one.
void ExpandOne(hlo::Builder& b, Value remainder) {
  Value x = remainder->operand(0), y = remainder->operand(1);
  const ElementType type = remainder->element_type();
  const bool is_wide = type == ElementType::kF64;
  const Division d = Divide(b, x, y);
  // The product with an infinite divisor is no number.
  Value is_near =
      b.And(is_wide ? IsNearOfF64(b, d) : IsNearOfF32(b, d), b.Unary(Opcode::kIsFinite, y));
  Value rest = is_wide ? RestOfF64(b, d) : RestOfF32(b, d);
  rest = b.Select(b.Lt(rest, Number(b, d, 0)), b.Add(rest, d.divisor), rest);
  Value near = b.Multiply(b.Convert(rest, type), b.Unary(Opcode::kSign, x));
  Value far = b.Remainder(x, y);
  remainder->ReplaceAllUsesWith(b.Select(is_near, near, far));
}

bool ExpandRemaindersIn(hlo::Computation& computation) {
  return passes::RewriteEach(computation, IsOfFloats, [&](hlo::Instruction* remainder) {
    hlo::Builder b(&computation);
    b.set_metadata(remainder->shared_metadata());
    ExpandOne(b, remainder);
    return true;
  });
}

}  // namespace

bool ExpandRemainder(hlo::Module& module) { return RewriteSteps(module, ExpandRemaindersIn); }

}  // namespace cpu
