// Arithmetic on floating-point numbers: see elementwise_emitter.h.
#include "cpu/emit/elementwise_emitter.h"

#include <llvm/IR/Intrinsics.h>

#include "cpu/emit/vector_math.h"
#include "hlo/error.h"

namespace cpu {

using hlo::ElementType;
using hlo::Opcode;
using llvm::Value;

Value* ElementwiseEmitter::FloatUnary(const hlo::Instruction& instruction, Value* x) {
  VectorMath math(b_);
  switch (instruction.opcode()) {
    case Opcode::kAbs:
      return Abs(x);
    case Opcode::kCbrt:
      return math.Cbrt(x);
    case Opcode::kCeil:
      return IntrinsicUnary(llvm::Intrinsic::ceil, x);
    case Opcode::kCosine:
      return math.Cos(x);
    case Opcode::kExponential:
      return math.Exp(x);
    case Opcode::kExponentialMinusOne:
      return math.Expm1(x);
    case Opcode::kFloor:
      return IntrinsicUnary(llvm::Intrinsic::floor, x);
    case Opcode::kIsFinite:
      return b_.CreateFCmpOLT(Abs(x), llvm::ConstantFP::getInfinity(x->getType()));
    case Opcode::kLog:
      return math.Log(x);
    case Opcode::kLogPlusOne:
      return math.Log1p(x);
    case Opcode::kLogistic:
      return math.Logistic(x);
    case Opcode::kNegate:
      return b_.CreateFNeg(x);
    case Opcode::kRoundNearestAfz:
      return IntrinsicUnary(llvm::Intrinsic::round, x);
    case Opcode::kRoundNearestEven:
      return IntrinsicUnary(llvm::Intrinsic::roundeven, x);
    case Opcode::kRsqrt:
      return b_.CreateFDiv(Float(x, 1.0), IntrinsicUnary(llvm::Intrinsic::sqrt, x));
    case Opcode::kSign: {
      Value* one = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, Float(x, 1.0), x);
      Value* ordered = b_.CreateFCmpONE(x, Float(x, 0.0));  // false for NaN too
      return b_.CreateSelect(ordered, one, x);
    }
    case Opcode::kSine:
      return math.Sin(x);
    case Opcode::kSqrt:
      return IntrinsicUnary(llvm::Intrinsic::sqrt, x);
    case Opcode::kTan:
      return math.Tan(x);
    case Opcode::kTanh:
      return math.Tanh(x);
    default:
      Unsupported(instruction);
  }
}

Value* ElementwiseEmitter::Maximum(Value* x, Value* y, bool maximum) {
  // NaN wins; of two zeros maximum gives +0 and minimum -0.
  return b_.CreateBinaryIntrinsic(maximum ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, x,
                                  y);
}

Value* ElementwiseEmitter::FloatBinary(Opcode opcode, Value* x, Value* y) {
  VectorMath math(b_);
  switch (opcode) {
    case Opcode::kAdd:
      return b_.CreateFAdd(x, y);
    case Opcode::kSubtract:
      return b_.CreateFSub(x, y);
    case Opcode::kMultiply:
      return b_.CreateFMul(x, y);
    case Opcode::kDivide:
      return b_.CreateFDiv(x, y);
    case Opcode::kMaximum:
      return Maximum(x, y, true);
    case Opcode::kMinimum:
      return Maximum(x, y, false);
    case Opcode::kRemainder:
      return math.Fmod(x, y);
    case Opcode::kAtan2:
      return math.Atan2(x, y);
    case Opcode::kPower:
      return math.Pow(x, y);
    default:
      throw hlo::Error(hlo::ErrorCode::kUnimplemented, "the CPU engine does not compute " +
                                                           std::string(hlo::Name(opcode)) +
                                                           " of floating point numbers");
  }
}

Value* ElementwiseEmitter::ReducePrecision(const hlo::Instruction& instruction, Value* x) {
  const auto& attributes = instruction.as<hlo::ReducePrecisionAttributes>();
  const bool is_double = x->getType()->getScalarType()->isDoubleTy();
  const int bits = is_double ? 64 : 32;
  const int mantissa = is_double ? 52 : 23;
  const int exponent = is_double ? 11 : 8;
  const int keep = std::min<int64_t>(attributes.mantissa_bits, mantissa);
  const int exponent_bits = std::min<int64_t>(attributes.exponent_bits, exponent);
  llvm::Type* integer = TypeLike(b_.getIntNTy(bits), x);
  auto constant = [&](uint64_t value) { return llvm::ConstantInt::get(integer, value); };
  Value* word = b_.CreateBitCast(x, integer);
  Value* result = word;
  if (keep < mantissa) {
    const int drop = mantissa - keep;
    Value* last = b_.CreateAnd(b_.CreateLShr(result, drop), constant(1));
    Value* bias = b_.CreateAdd(last, constant((uint64_t{1} << (drop - 1)) - 1));
    result = b_.CreateAnd(b_.CreateAdd(result, bias), constant(~((uint64_t{1} << drop) - 1)));
  }
  if (exponent_bits < exponent) {
    const uint64_t sign_bit = uint64_t{1} << (bits - 1);
    const uint64_t exponent_mask = ((uint64_t{1} << exponent) - 1) << mantissa;
    const uint64_t bias = (uint64_t{1} << (exponent - 1)) - 1;
    const uint64_t reduced_bias = (uint64_t{1} << (exponent_bits - 1)) - 1;
    const uint64_t highest = (bias + reduced_bias) << mantissa;
    const uint64_t lowest = (bias - reduced_bias)
                            << mantissa;  // its exponent is the first to underflow
    Value* field = b_.CreateAnd(result, constant(exponent_mask));
    Value* sign = b_.CreateAnd(word, constant(sign_bit));
    Value* overflows = b_.CreateICmpUGT(field, constant(highest));
    Value* underflows = b_.CreateICmpULE(field, constant(lowest));
    result = b_.CreateSelect(overflows, b_.CreateOr(sign, constant(exponent_mask)), result);
    result = b_.CreateSelect(underflows, sign, result);
  }
  Value* number = b_.CreateBitCast(result, x->getType());
  return Round(b_.CreateSelect(b_.CreateFCmpUNO(x, x), x, number), instruction.element_type());
}

Element ElementwiseEmitter::Erf(const Element& x, ElementType type) {
  return {Round(VectorMath(b_).Erf(x.real), type)};
}

}  // namespace cpu
