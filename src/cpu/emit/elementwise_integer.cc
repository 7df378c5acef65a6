// Arithmetic on integers and predicates: see elementwise_emitter.h.
#include "cpu/emit/elementwise_emitter.h"
#include "hlo/error.h"

#include <llvm/IR/Intrinsics.h>

namespace cpu {

using hlo::ElementType;
using hlo::Opcode;
using llvm::Value;

Value* ElementwiseEmitter::IntegerUnary(const hlo::Instruction& instruction, Value* x) {
  const ElementType type = instruction.operand(0)->element_type();
  switch (instruction.opcode()) {
    case Opcode::kAbs:
      if (!hlo::IsSignedInteger(type)) return x;
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b_.getFalse());
    case Opcode::kCountLeadingZeros:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x, b_.getFalse());
    case Opcode::kPopcnt:
      return IntrinsicUnary(llvm::Intrinsic::ctpop, x);
    case Opcode::kNegate:
      return b_.CreateNeg(x);
    case Opcode::kNot:
      return b_.CreateNot(x);
    case Opcode::kSign: {
      Value* zero = Int(x, 0);
      Value* positive = b_.CreateZExt(b_.CreateICmpNE(x, zero), x->getType());
      if (!hlo::IsSignedInteger(type)) return positive;
      return b_.CreateSelect(b_.CreateICmpSLT(x, zero), Int(x, -1), positive);
    }
    case Opcode::kIsFinite:
      return llvm::ConstantInt::getTrue(TypeLike(b_.getInt1Ty(), x));
    default:
      Unsupported(instruction);
  }
}

Value* ElementwiseEmitter::Shift(Opcode opcode, Value* x, Value* amount) {
  const int bits = x->getType()->getScalarSizeInBits();
  Value* in_range = b_.CreateICmpULT(amount, Int(x, bits));
  if (opcode == Opcode::kShiftRightArithmetic) {
    return b_.CreateAShr(x, b_.CreateSelect(in_range, amount, Int(x, bits - 1)));
  }
  Value* safe = b_.CreateSelect(in_range, amount, Int(x, 0));
  Value* shifted = opcode == Opcode::kShiftLeft ? b_.CreateShl(x, safe) : b_.CreateLShr(x, safe);
  return b_.CreateSelect(in_range, shifted, Int(x, 0));
}

Value* ElementwiseEmitter::IntegerPower(ElementType type, Value* x, Value* y) {
  // By squaring over all bits of the exponent: straight-line.
  const int bits = x->getType()->getScalarSizeInBits();
  Value* one = Int(x, 1);
  Value* zero = Int(x, 0);
  Value* result = one;
  Value* base = x;
  for (int i = 0; i < bits - (hlo::IsSignedInteger(type) ? 1 : 0); ++i) {
    Value* odd = b_.CreateICmpNE(
        b_.CreateAnd(y, llvm::ConstantInt::get(x->getType(), uint64_t{1} << i)), zero);
    result = b_.CreateSelect(odd, b_.CreateMul(result, base), result);
    base = b_.CreateMul(base, base);
  }
  if (!hlo::IsSignedInteger(type)) return result;
  // A negative exponent: 1 for base 1, ±1 for base -1, else 0.
  Value* minus_one = Int(x, -1);
  Value* odd = b_.CreateICmpNE(b_.CreateAnd(y, one), zero);
  Value* negative =
      b_.CreateSelect(b_.CreateICmpEQ(x, minus_one), b_.CreateSelect(odd, minus_one, one), zero);
  negative = b_.CreateSelect(b_.CreateICmpEQ(x, one), one, negative);
  return b_.CreateSelect(b_.CreateICmpSLT(y, zero), negative, result);
}

// Processors divide vectors of floats only. The quotient of two numbers of 32 bits is never so near
// below a whole number that it would be rounded to that.
Value* ElementwiseEmitter::Quotient(Value* x, Value* y, bool is_signed) {
  const bool is_vector = x->getType()->isVectorTy() && x->getType()->getScalarSizeInBits() <= 32;
  if (!is_vector || llvm::isa<llvm::Constant>(y)) {
    return is_signed ? b_.CreateSDiv(x, y) : b_.CreateUDiv(x, y);
  }
  llvm::Type* real = TypeLike(b_.getDoubleTy(), x);
  const auto to_real = [&](Value* n) {
    return is_signed ? b_.CreateSIToFP(n, real) : b_.CreateUIToFP(n, real);
  };
  Value* quotient = b_.CreateFDiv(to_real(x), to_real(y));
  return is_signed ? b_.CreateFPToSI(quotient, x->getType())
                   : b_.CreateFPToUI(quotient, x->getType());
}

Value* ElementwiseEmitter::Rest(Value* x, Value* y, bool is_signed) {
  if (!x->getType()->isVectorTy() || llvm::isa<llvm::Constant>(y)) {
    return is_signed ? b_.CreateSRem(x, y) : b_.CreateURem(x, y);
  }
  return b_.CreateSub(x, b_.CreateMul(Quotient(x, y, is_signed), y));
}

Value* ElementwiseEmitter::IntegerBinary(Opcode opcode, ElementType type, Value* x, Value* y) {
  const bool is_signed = hlo::IsSignedInteger(type);
  const bool is_pred = type == ElementType::kPred;
  switch (opcode) {
    case Opcode::kAdd:
      return is_pred ? b_.CreateOr(x, y) : b_.CreateAdd(x, y);
    case Opcode::kSubtract:
      return is_pred ? b_.CreateXor(x, y) : b_.CreateSub(x, y);
    case Opcode::kMultiply:
      return is_pred ? b_.CreateAnd(x, y) : b_.CreateMul(x, y);
    case Opcode::kAnd:
      return b_.CreateAnd(x, y);
    case Opcode::kOr:
      return b_.CreateOr(x, y);
    case Opcode::kXor:
      return b_.CreateXor(x, y);
    case Opcode::kMaximum:
      return b_.CreateSelect(is_signed ? b_.CreateICmpSGT(x, y) : b_.CreateICmpUGT(x, y), x, y);
    case Opcode::kMinimum:
      return b_.CreateSelect(is_signed ? b_.CreateICmpSLT(x, y) : b_.CreateICmpULT(x, y), x, y);
    case Opcode::kDivide:
    case Opcode::kRemainder: {
      // x / 0 is all ones and x % 0 is x; the lowest number / -1 is itself, % -1 is 0.
      Value* zero = Int(x, 0);
      Value* one = Int(x, 1);
      Value* by_zero = b_.CreateICmpEQ(y, zero);
      Value* safe = b_.CreateSelect(by_zero, one, y);
      if (!is_signed) {
        if (opcode == Opcode::kDivide) {
          return b_.CreateSelect(by_zero, Int(x, -1), Quotient(x, safe, is_signed));
        }
        return b_.CreateSelect(by_zero, x, Rest(x, safe, is_signed));
      }
      Value* by_minus_one = b_.CreateICmpEQ(y, Int(x, -1));
      safe = b_.CreateSelect(by_minus_one, one, safe);
      if (opcode == Opcode::kDivide) {
        Value* quotient = Quotient(x, safe, is_signed);
        quotient = b_.CreateSelect(by_minus_one, b_.CreateNeg(x), quotient);
        return b_.CreateSelect(by_zero, Int(x, -1), quotient);
      }
      Value* remainder = Rest(x, safe, is_signed);
      remainder = b_.CreateSelect(by_minus_one, zero, remainder);
      return b_.CreateSelect(by_zero, x, remainder);
    }
    case Opcode::kPower:
      return IntegerPower(type, x, y);
    case Opcode::kShiftLeft:
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
      return Shift(opcode, x, y);
    default:
      throw hlo::Error(hlo::ErrorCode::kUnimplemented, "the CPU engine does not compute " +
                                                           std::string(hlo::Name(opcode)) + " of " +
                                                           std::string(hlo::ShortName(type)));
  }
}

}  // namespace cpu
