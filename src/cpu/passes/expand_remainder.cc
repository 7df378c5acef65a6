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

// 24 bits of an f32 times these are no more than an f64 has.
constexpr double kMostQuotient = 0x1p28;

bool IsOfFloats(const hlo::Instruction& instruction) {
  return instruction.opcode() == Opcode::kRemainder &&
         instruction.element_type() == ElementType::kF32 && instruction.shape().rank() > 0;
}

// x - floor(x / y) y of positive numbers, with the sign of the first one.
void ExpandOne(hlo::Builder& b, Value remainder) {
  Value x = remainder->operand(0), y = remainder->operand(1);
  const auto wide = [&](Value v) { return b.Unary(Opcode::kAbs, b.Convert(v, ElementType::kF64)); };
  Value dividend = wide(x), divisor = wide(y);
  const auto number = [&](double n) { return b.Full(dividend->shape(), n); };
  Value quotient = b.Divide(dividend, divisor);
  // The product with an infinite divisor is no number.
  Value is_near = b.And(b.Lt(quotient, number(kMostQuotient)), b.Unary(Opcode::kIsFinite, y));
  Value rest = b.Subtract(dividend, b.Multiply(b.Unary(Opcode::kFloor, quotient), divisor));
  // The quotient may have been rounded up to a whole number.
  rest = b.Select(b.Lt(rest, number(0)), b.Add(rest, divisor), rest);
  Value near = b.Multiply(b.Convert(rest, ElementType::kF32), b.Unary(Opcode::kSign, x));
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
