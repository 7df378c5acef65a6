#include "cpu/emit/elementwise_emitter.h"

#include <llvm/IR/Intrinsics.h>

#include <cmath>
#include <limits>

#include "cpu/emit/vector_math.h"

namespace cpu {
namespace {

using hlo::ElementType;
using hlo::Opcode;
using llvm::Value;
using llvm::Intrinsic::ID;

[[noreturn]] void Unsupported(const hlo::Instruction& instruction) {
  throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                   "the CPU engine does not compute " + instruction.ToString());
}

bool IsSigned(ElementType type) { return hlo::IsSignedInteger(type); }
bool IsIntegral(ElementType type) { return hlo::IsInteger(type) || type == ElementType::kPred; }

}  // namespace

llvm::Type* MemoryType(llvm::LLVMContext& context, ElementType type) {
  switch (type) {
    case ElementType::kPred:
    case ElementType::kS8:
    case ElementType::kU8:
      return llvm::Type::getInt8Ty(context);
    case ElementType::kS16:
    case ElementType::kU16:
    case ElementType::kF16:
    case ElementType::kBF16:
      return llvm::Type::getInt16Ty(context);
    case ElementType::kS32:
    case ElementType::kU32:
      return llvm::Type::getInt32Ty(context);
    case ElementType::kS64:
    case ElementType::kU64:
      return llvm::Type::getInt64Ty(context);
    case ElementType::kF32:
    case ElementType::kC64:
      return llvm::Type::getFloatTy(context);
    case ElementType::kF64:
    case ElementType::kC128:
      return llvm::Type::getDoubleTy(context);
    default:
      throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                       "the CPU engine does not compute with elements of type " +
                           std::string(hlo::ShortName(type)));
  }
}

llvm::Type* RegisterType(llvm::LLVMContext& context, ElementType type) {
  if (type == ElementType::kPred) return llvm::Type::getInt1Ty(context);
  if (type == ElementType::kF16 || type == ElementType::kBF16)
    return llvm::Type::getFloatTy(context);
  return MemoryType(context, type);
}

llvm::Type* ElementwiseEmitter::TypeLike(llvm::Type* element, Value* like) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
  return vector ? llvm::FixedVectorType::get(element, vector->getNumElements()) : element;
}

Value* ElementwiseEmitter::Float(Value* like, double value) {
  return llvm::ConstantFP::get(like->getType(), value);
}
Value* ElementwiseEmitter::Int(Value* like, int64_t value) {
  return llvm::ConstantInt::getSigned(like->getType(), value);
}
Value* ElementwiseEmitter::IntrinsicUnary(ID id, Value* x) {
  return b_.CreateUnaryIntrinsic(id, x);
}
Value* ElementwiseEmitter::Abs(Value* x) { return IntrinsicUnary(llvm::Intrinsic::fabs, x); }

Value* ElementwiseEmitter::Round(Value* x, ElementType type) {
  if (!round_) return x;
  if (type == ElementType::kF16) {
    Value* narrow = b_.CreateFPTrunc(x, TypeLike(b_.getHalfTy(), x));
    return b_.CreateFPExt(narrow, x->getType());
  }
  if (type != ElementType::kBF16) return x;
  // With integers: the machine's conversion flushes subnormals.
  Value* bits = b_.CreateBitCast(x, TypeLike(b_.getInt32Ty(), x));
  Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 16), Int(bits, 1));
  Value* rounded = b_.CreateAdd(b_.CreateAdd(bits, Int(bits, 0x7fff)), odd);
  Value* quiet = b_.CreateOr(bits, Int(bits, 0x400000));
  Value* result = b_.CreateSelect(b_.CreateFCmpUNO(x, x), quiet, rounded);
  result = b_.CreateAnd(result, Int(bits, static_cast<int32_t>(0xffff0000u)));
  return b_.CreateBitCast(result, x->getType());
}

Value* ElementwiseEmitter::ToMemory(Value* part, ElementType type) {
  if (type == ElementType::kPred) return b_.CreateZExt(part, TypeLike(b_.getInt8Ty(), part));
  if (type == ElementType::kF16) {
    Value* half = b_.CreateFPTrunc(part, TypeLike(b_.getHalfTy(), part));
    return b_.CreateBitCast(half, TypeLike(b_.getInt16Ty(), part));
  }
  if (type == ElementType::kBF16) {
    Value* bits = b_.CreateBitCast(part, TypeLike(b_.getInt32Ty(), part));
    return b_.CreateTrunc(b_.CreateLShr(bits, 16), TypeLike(b_.getInt16Ty(), part));
  }
  return part;
}

Value* ElementwiseEmitter::FromMemory(Value* part, ElementType type) {
  if (type == ElementType::kPred) return b_.CreateICmpNE(part, Int(part, 0));
  if (type == ElementType::kF16) {
    Value* half = b_.CreateBitCast(part, TypeLike(b_.getHalfTy(), part));
    return b_.CreateFPExt(half, TypeLike(b_.getFloatTy(), part));
  }
  if (type == ElementType::kBF16) {
    Value* bits = b_.CreateShl(b_.CreateZExt(part, TypeLike(b_.getInt32Ty(), part)), 16);
    return b_.CreateBitCast(bits, TypeLike(b_.getFloatTy(), part));
  }
  return part;
}

Element ElementwiseEmitter::Constant(const hlo::Literal& literal, int64_t index) {
  ElementType type = literal.shape().element_type();
  llvm::LLVMContext& context = b_.getContext();
  llvm::Type* register_type = RegisterType(context, type);
  return hlo::DispatchNative(type, [&]<typename T>() -> Element {
    T value = literal.data<T>()[index];
    if constexpr (std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, std::complex<double>>) {
      using Real = typename T::value_type;
      return {llvm::ConstantFP::get(context, llvm::APFloat(Real(value.real()))),
              llvm::ConstantFP::get(context, llvm::APFloat(Real(value.imag())))};
    } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      return {llvm::ConstantFP::get(context, llvm::APFloat(value))};
    } else if constexpr (std::is_same_v<T, hlo::Float16> || std::is_same_v<T, hlo::BFloat16>) {
      return {llvm::ConstantFP::get(context, llvm::APFloat(static_cast<float>(value)))};
    } else {
      return {llvm::ConstantInt::get(register_type, static_cast<uint64_t>(value))};
    }
  });
}

Element ElementwiseEmitter::Zero(ElementType type) {
  Value* zero = llvm::Constant::getNullValue(RegisterType(b_.getContext(), type));
  return {zero, hlo::IsComplex(type) ? zero : nullptr};
}

Element ElementwiseEmitter::Emit(const hlo::Instruction& instruction,
                                 std::span<const Element> operands) {
  const ElementType type = instruction.element_type();
  switch (instruction.opcode()) {
    case Opcode::kCompare:
      return Compare(instruction, operands[0], operands[1]);
    case Opcode::kSelect: {
      Element result;
      result.real = b_.CreateSelect(operands[0].real, operands[1].real, operands[2].real);
      if (operands[1].imaginary) {
        result.imaginary =
            b_.CreateSelect(operands[0].real, operands[1].imaginary, operands[2].imaginary);
      }
      return result;
    }
    case Opcode::kClamp: {
      Element low = Binary(Opcode::kMaximum, type, operands[1], operands[0]);
      return Binary(Opcode::kMinimum, type, low, operands[2]);
    }
    case Opcode::kConvert:
      return Convert(operands[0], instruction.operand(0)->element_type(), type);
    case Opcode::kBitcastConvert:
      return BitcastConvert(operands[0], instruction.operand(0)->element_type(), type);
    case Opcode::kReducePrecision:
      return {ReducePrecision(instruction, operands[0].real)};
    default:
      break;
  }
  if (hlo::IsElementwiseUnary(instruction.opcode())) return Unary(instruction, operands[0]);
  if (hlo::IsElementwiseBinary(instruction.opcode())) {
    if (instruction.opcode() == Opcode::kComplex) return {operands[0].real, operands[1].real};
    return Binary(instruction.opcode(), type, operands[0], operands[1]);
  }
  Unsupported(instruction);
}

// ---------------------------------------------------------------------------------------------------------
// Unary.

Element ElementwiseEmitter::Unary(const hlo::Instruction& instruction, const Element& x) {
  const ElementType from = instruction.operand(0)->element_type();
  if (hlo::IsComplex(from)) return ComplexUnary(instruction, x);
  if (instruction.opcode() == Opcode::kReal) return x;
  if (instruction.opcode() == Opcode::kImag)
    return {llvm::Constant::getNullValue(x.real->getType())};
  if (hlo::IsFloat(from)) {
    Value* result = FloatUnary(instruction, x.real);
    return {hlo::IsFloat(instruction.element_type()) ? Round(result, instruction.element_type())
                                                     : result};
  }
  return {IntegerUnary(instruction, x.real)};
}

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

Value* ElementwiseEmitter::IntegerUnary(const hlo::Instruction& instruction, Value* x) {
  const ElementType type = instruction.operand(0)->element_type();
  switch (instruction.opcode()) {
    case Opcode::kAbs:
      if (!IsSigned(type)) return x;
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
      if (!IsSigned(type)) return positive;
      return b_.CreateSelect(b_.CreateICmpSLT(x, zero), Int(x, -1), positive);
    }
    case Opcode::kIsFinite:
      return llvm::ConstantInt::getTrue(TypeLike(b_.getInt1Ty(), x));
    default:
      Unsupported(instruction);
  }
}

Element ElementwiseEmitter::ComplexUnary(const hlo::Instruction& instruction, const Element& x) {
  VectorMath math(b_);
  Value* one = Float(x.real, 1.0);
  Value* zero = Float(x.real, 0.0);
  switch (instruction.opcode()) {
    case Opcode::kReal:
      return {x.real};
    case Opcode::kImag:
      return {x.imaginary};
    case Opcode::kAbs:
      return {math.Hypot(x.real, x.imaginary)};
    case Opcode::kNegate:
      return {b_.CreateFNeg(x.real), b_.CreateFNeg(x.imaginary)};
    case Opcode::kExponential:
      return ComplexExp(x);
    case Opcode::kExponentialMinusOne: {
      // e^(a+bi) - 1 = expm1(a) cos b - 2 sin(b/2)^2 + i e^a sin b.
      Value* sine = math.Sin(b_.CreateFMul(x.imaginary, Float(x.real, 0.5)));
      Value* real = b_.CreateFSub(b_.CreateFMul(math.Expm1(x.real), math.Cos(x.imaginary)),
                                  b_.CreateFMul(Float(x.real, 2.0), b_.CreateFMul(sine, sine)));
      return {real, b_.CreateFMul(math.Exp(x.real), math.Sin(x.imaginary))};
    }
    case Opcode::kLog:
      return ComplexLog(x);
    case Opcode::kLogPlusOne: {
      // log|1+z| = log1p(2a + a² + b²) / 2.
      Value* square =
          b_.CreateFAdd(b_.CreateFMul(x.real, b_.CreateFAdd(x.real, Float(x.real, 2.0))),
                        b_.CreateFMul(x.imaginary, x.imaginary));
      return {b_.CreateFMul(Float(x.real, 0.5), math.Log1p(square)),
              math.Atan2(x.imaginary, b_.CreateFAdd(x.real, one))};
    }
    case Opcode::kLogistic: {
      Element e = ComplexExp({b_.CreateFNeg(x.real), b_.CreateFNeg(x.imaginary)});
      return ComplexDivide({one, zero}, {b_.CreateFAdd(e.real, one), e.imaginary});
    }
    case Opcode::kSqrt:
      return ComplexSqrt(x);
    case Opcode::kRsqrt:
      return ComplexDivide({one, zero}, ComplexSqrt(x));
    case Opcode::kCbrt: {
      Value* third = Float(x.real, 1.0 / 3.0);
      Element log = ComplexLog(x);
      Element root =
          ComplexExp({b_.CreateFMul(log.real, third), b_.CreateFMul(log.imaginary, third)});
      Value* is_zero =
          b_.CreateAnd(b_.CreateFCmpOEQ(x.real, zero), b_.CreateFCmpOEQ(x.imaginary, zero));
      return {b_.CreateSelect(is_zero, zero, root.real),
              b_.CreateSelect(is_zero, zero, root.imaginary)};
    }
    case Opcode::kSine:
    case Opcode::kCosine: {
      // sin(a+bi) = sin a cosh b + i cos a sinh b; cos(a+bi) = cos a cosh b - i sin a sinh b.
      Value* half = Float(x.real, 0.5);
      Value* e = math.Exp(x.imaginary);
      Value* inverse = math.Exp(b_.CreateFNeg(x.imaginary));
      Value* cosh = b_.CreateFMul(half, b_.CreateFAdd(e, inverse));
      Value* m = math.Expm1(Abs(x.imaginary));
      // sinh |b| = (m + m / (m + 1)) / 2, exact for small b.
      Value* sinh = b_.CreateFMul(half, b_.CreateFAdd(m, b_.CreateFDiv(m, b_.CreateFAdd(m, one))));
      sinh = b_.CreateCopySign(sinh, x.imaginary);
      Value* large = b_.CreateFCmpOGT(Abs(x.imaginary), Float(x.real, 10.0));
      sinh = b_.CreateSelect(large, b_.CreateFMul(half, b_.CreateFSub(e, inverse)), sinh);
      Value* sine = math.Sin(x.real);
      Value* cosine = math.Cos(x.real);
      if (instruction.opcode() == Opcode::kSine) {
        return {b_.CreateFMul(sine, cosh), b_.CreateFMul(cosine, sinh)};
      }
      return {b_.CreateFMul(cosine, cosh), b_.CreateFNeg(b_.CreateFMul(sine, sinh))};
    }
    case Opcode::kTan: {
      // tan z = -i tanh(iz).
      Element t = ComplexTanh({b_.CreateFNeg(x.imaginary), x.real});
      return {t.imaginary, b_.CreateFNeg(t.real)};
    }
    case Opcode::kTanh:
      return ComplexTanh(x);
    case Opcode::kSign: {
      Value* magnitude = math.Hypot(x.real, x.imaginary);
      Value* is_zero = b_.CreateFCmpOEQ(magnitude, zero);
      return {b_.CreateSelect(is_zero, zero, b_.CreateFDiv(x.real, magnitude)),
              b_.CreateSelect(is_zero, zero, b_.CreateFDiv(x.imaginary, magnitude))};
    }
    case Opcode::kIsFinite: {
      Value* infinity = llvm::ConstantFP::getInfinity(x.real->getType());
      return {b_.CreateAnd(b_.CreateFCmpOLT(Abs(x.real), infinity),
                           b_.CreateFCmpOLT(Abs(x.imaginary), infinity))};
    }
    default:
      Unsupported(instruction);
  }
}

Element ElementwiseEmitter::ComplexExp(const Element& x) {
  VectorMath math(b_);
  Value* e = math.Exp(x.real);
  Value* zero = Float(x.real, 0.0);
  Value* is_real = b_.CreateFCmpOEQ(x.imaginary, zero);
  Value* imaginary = b_.CreateFMul(e, math.Sin(x.imaginary));
  return {b_.CreateFMul(e, math.Cos(x.imaginary)),
          b_.CreateSelect(is_real, x.imaginary, imaginary)};
}

Element ElementwiseEmitter::ComplexLog(const Element& x) {
  VectorMath math(b_);
  return {math.Log(math.Hypot(x.real, x.imaginary)), math.Atan2(x.imaginary, x.real)};
}

Element ElementwiseEmitter::ComplexSqrt(const Element& x) {
  VectorMath math(b_);
  // With t = sqrt((|a| + |z|) / 2): for a >= 0 it is t + i b / 2t, else |b| / 2t + i t sign(b).
  Value* half = Float(x.real, 0.5);
  Value* zero = Float(x.real, 0.0);
  Value* magnitude = math.Hypot(x.real, x.imaginary);
  Value* t = IntrinsicUnary(llvm::Intrinsic::sqrt,
                            b_.CreateFMul(half, b_.CreateFAdd(Abs(x.real), magnitude)));
  Value* is_zero = b_.CreateFCmpOEQ(magnitude, zero);
  Value* other = b_.CreateFDiv(x.imaginary, b_.CreateFAdd(t, t));
  other = b_.CreateSelect(is_zero, x.imaginary, other);
  Value* positive = b_.CreateFCmpOGE(x.real, zero);
  Value* real = b_.CreateSelect(positive, t, Abs(other));
  Value* imaginary = b_.CreateSelect(
      positive, other, b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, t, x.imaginary));
  return {real, imaginary};
}

Element ElementwiseEmitter::ComplexTanh(const Element& x) {
  VectorMath math(b_);
  // tanh(a+bi) = (T (1 + t²) + i t (1 - T²)) / (1 + T² t²) with T = tanh a, t = tan b.
  Value* one = Float(x.real, 1.0);
  Value* tanh = math.Tanh(x.real);
  Value* tan = math.Tan(x.imaginary);
  Value* tanh_square = b_.CreateFMul(tanh, tanh);
  Value* tan_square = b_.CreateFMul(tan, tan);
  Value* denominator = b_.CreateFAdd(one, b_.CreateFMul(tanh_square, tan_square));
  return {b_.CreateFDiv(b_.CreateFMul(tanh, b_.CreateFAdd(one, tan_square)), denominator),
          b_.CreateFDiv(b_.CreateFMul(tan, b_.CreateFSub(one, tanh_square)), denominator)};
}

// ---------------------------------------------------------------------------------------------------------
// Binary.

Element ElementwiseEmitter::Binary(Opcode opcode, ElementType type, const Element& x,
                                   const Element& y) {
  if (hlo::IsComplex(type)) return ComplexBinary(opcode, x, y);
  const bool compares = opcode == Opcode::kMaximum || opcode == Opcode::kMinimum;
  if (type == ElementType::kF16 && compares) {
    // Behind fences: LLVM would compare in f16, which it does one element after the other, and
    // wrongly for zero and NaN.
    auto fenced = [&](Value* part) { return b_.CreateArithmeticFence(part, part->getType()); };
    return {FloatBinary(opcode, fenced(x.real), fenced(y.real))};
  }
  if (hlo::IsFloat(type)) return {Round(FloatBinary(opcode, x.real, y.real), type)};
  return {IntegerBinary(opcode, type, x.real, y.real)};
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
    case Opcode::kPower: {
      auto* constant = llvm::dyn_cast<llvm::Constant>(y);
      if (constant && y->getType()->isVectorTy()) constant = constant->getSplatValue();
      if (auto* exponent = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant)) {
        if (exponent->isExactlyValue(2.0)) return b_.CreateFMul(x, x);
        if (exponent->isExactlyValue(1.0)) return x;
        if (exponent->isExactlyValue(3.0)) return b_.CreateFMul(b_.CreateFMul(x, x), x);
        if (exponent->isExactlyValue(-1.0)) return b_.CreateFDiv(Float(x, 1.0), x);
      }
      return math.Pow(x, y);
    }
    default:
      throw hlo::Error(hlo::ErrorCode::kUnimplemented, "the CPU engine does not compute " +
                                                           std::string(hlo::Name(opcode)) +
                                                           " of floating point numbers");
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
  for (int i = 0; i < bits - (IsSigned(type) ? 1 : 0); ++i) {
    Value* odd = b_.CreateICmpNE(
        b_.CreateAnd(y, llvm::ConstantInt::get(x->getType(), uint64_t{1} << i)), zero);
    result = b_.CreateSelect(odd, b_.CreateMul(result, base), result);
    base = b_.CreateMul(base, base);
  }
  if (!IsSigned(type)) return result;
  // A negative exponent: 1 for base 1, ±1 for base -1, else 0.
  Value* minus_one = Int(x, -1);
  Value* odd = b_.CreateICmpNE(b_.CreateAnd(y, one), zero);
  Value* negative =
      b_.CreateSelect(b_.CreateICmpEQ(x, minus_one), b_.CreateSelect(odd, minus_one, one), zero);
  negative = b_.CreateSelect(b_.CreateICmpEQ(x, one), one, negative);
  return b_.CreateSelect(b_.CreateICmpSLT(y, zero), negative, result);
}

Value* ElementwiseEmitter::IntegerBinary(Opcode opcode, ElementType type, Value* x, Value* y) {
  const bool is_signed = IsSigned(type);
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
          return b_.CreateSelect(by_zero, Int(x, -1), b_.CreateUDiv(x, safe));
        }
        return b_.CreateSelect(by_zero, x, b_.CreateURem(x, safe));
      }
      Value* by_minus_one = b_.CreateICmpEQ(y, Int(x, -1));
      safe = b_.CreateSelect(by_minus_one, one, safe);
      if (opcode == Opcode::kDivide) {
        Value* quotient = b_.CreateSDiv(x, safe);
        quotient = b_.CreateSelect(by_minus_one, b_.CreateNeg(x), quotient);
        return b_.CreateSelect(by_zero, Int(x, -1), quotient);
      }
      Value* remainder = b_.CreateSRem(x, safe);
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

Element ElementwiseEmitter::ComplexMultiply(const Element& x, const Element& y) {
  return {b_.CreateFSub(b_.CreateFMul(x.real, y.real), b_.CreateFMul(x.imaginary, y.imaginary)),
          b_.CreateFAdd(b_.CreateFMul(x.real, y.imaginary), b_.CreateFMul(x.imaginary, y.real))};
}

Element ElementwiseEmitter::ComplexDivide(const Element& x, const Element& y) {
  // Smith's method: scaled by the larger part of y, so that squares neither overflow nor vanish.
  Value* real_larger = b_.CreateFCmpOGE(Abs(y.real), Abs(y.imaginary));
  Value* large = b_.CreateSelect(real_larger, y.real, y.imaginary);
  Value* small = b_.CreateSelect(real_larger, y.imaginary, y.real);
  Value* ratio = b_.CreateFDiv(small, large);
  Value* denominator = b_.CreateFAdd(large, b_.CreateFMul(small, ratio));
  Value* a = b_.CreateSelect(real_larger, x.real, x.imaginary);
  Value* b = b_.CreateSelect(real_larger, x.imaginary, x.real);
  Value* real = b_.CreateFDiv(b_.CreateFAdd(a, b_.CreateFMul(b, ratio)), denominator);
  // (b - a r) where y's real part is the larger, (a' ratio - real) elsewhere: the same up to sign.
  Value* imaginary = b_.CreateFDiv(b_.CreateFSub(b, b_.CreateFMul(a, ratio)), denominator);
  imaginary = b_.CreateSelect(real_larger, imaginary, b_.CreateFNeg(imaginary));
  // By zero: infinities with the parts' signs, as the plain quotients give.
  Value* by_zero = b_.CreateAnd(b_.CreateFCmpOEQ(y.real, Float(y.real, 0.0)),
                                b_.CreateFCmpOEQ(y.imaginary, Float(y.real, 0.0)));
  return {b_.CreateSelect(by_zero, b_.CreateFDiv(x.real, y.real), real),
          b_.CreateSelect(by_zero, b_.CreateFDiv(x.imaginary, y.real), imaginary)};
}

Element ElementwiseEmitter::ComplexBinary(Opcode opcode, const Element& x, const Element& y) {
  switch (opcode) {
    case Opcode::kAdd:
      return {b_.CreateFAdd(x.real, y.real), b_.CreateFAdd(x.imaginary, y.imaginary)};
    case Opcode::kSubtract:
      return {b_.CreateFSub(x.real, y.real), b_.CreateFSub(x.imaginary, y.imaginary)};
    case Opcode::kMultiply:
      return ComplexMultiply(x, y);
    case Opcode::kDivide:
      return ComplexDivide(x, y);
    case Opcode::kMaximum:
    case Opcode::kMinimum: {
      // In lexicographic order.
      const bool maximum = opcode == Opcode::kMaximum;
      Value* beyond = maximum ? b_.CreateFCmpOGT(x.real, y.real) : b_.CreateFCmpOLT(x.real, y.real);
      Value* further = maximum ? b_.CreateFCmpOGT(x.imaginary, y.imaginary)
                               : b_.CreateFCmpOLT(x.imaginary, y.imaginary);
      Value* first = b_.CreateOr(beyond, b_.CreateAnd(b_.CreateFCmpOEQ(x.real, y.real), further));
      return {b_.CreateSelect(first, x.real, y.real),
              b_.CreateSelect(first, x.imaginary, y.imaginary)};
    }
    case Opcode::kPower: {
      Element log = ComplexLog(x);
      Element result = ComplexExp(ComplexMultiply(log, y));
      // 0^0 is 1 and 0^y is 0.
      Value* zero = Float(x.real, 0.0);
      Value* base_zero =
          b_.CreateAnd(b_.CreateFCmpOEQ(x.real, zero), b_.CreateFCmpOEQ(x.imaginary, zero));
      Value* exponent_zero =
          b_.CreateAnd(b_.CreateFCmpOEQ(y.real, zero), b_.CreateFCmpOEQ(y.imaginary, zero));
      Value* real = b_.CreateSelect(base_zero, zero, result.real);
      Value* imaginary = b_.CreateSelect(base_zero, zero, result.imaginary);
      return {b_.CreateSelect(exponent_zero, Float(x.real, 1.0), real),
              b_.CreateSelect(exponent_zero, zero, imaginary)};
    }
    case Opcode::kAtan2: {
      // -i log((x + i y) / sqrt(x² + y²)) with y first.
      Element i_y = {b_.CreateFNeg(x.imaginary), x.real};
      Element sum = {b_.CreateFAdd(y.real, i_y.real), b_.CreateFAdd(y.imaginary, i_y.imaginary)};
      Element xx = ComplexMultiply(x, x);
      Element yy = ComplexMultiply(y, y);
      Element root =
          ComplexSqrt({b_.CreateFAdd(xx.real, yy.real), b_.CreateFAdd(xx.imaginary, yy.imaginary)});
      Element log = ComplexLog(ComplexDivide(sum, root));
      return {log.imaginary, b_.CreateFNeg(log.real)};
    }
    default:
      throw hlo::Error(hlo::ErrorCode::kUnimplemented, "the CPU engine does not compute " +
                                                           std::string(hlo::Name(opcode)) +
                                                           " of complex numbers");
  }
}

Element ElementwiseEmitter::Compare(const hlo::Instruction& instruction, const Element& x,
                                    const Element& y) {
  const auto& attributes = instruction.as<hlo::CompareAttributes>();
  const ElementType type = instruction.operand(0)->element_type();
  using D = hlo::ComparisonDirection;
  const D direction = attributes.direction;
  if (hlo::IsComplex(type)) {
    if (direction == D::kEq) {
      return {b_.CreateAnd(b_.CreateFCmpOEQ(x.real, y.real),
                           b_.CreateFCmpOEQ(x.imaginary, y.imaginary))};
    }
    if (direction == D::kNe) {
      return {b_.CreateOr(b_.CreateFCmpUNE(x.real, y.real),
                          b_.CreateFCmpUNE(x.imaginary, y.imaginary))};
    }
    Unsupported(instruction);
  }
  auto compare_integers = [&](Value* a, Value* b, bool is_signed) -> Value* {
    switch (direction) {
      case D::kEq:
        return b_.CreateICmpEQ(a, b);
      case D::kNe:
        return b_.CreateICmpNE(a, b);
      case D::kGe:
        return is_signed ? b_.CreateICmpSGE(a, b) : b_.CreateICmpUGE(a, b);
      case D::kGt:
        return is_signed ? b_.CreateICmpSGT(a, b) : b_.CreateICmpUGT(a, b);
      case D::kLe:
        return is_signed ? b_.CreateICmpSLE(a, b) : b_.CreateICmpULE(a, b);
      case D::kLt:
        return is_signed ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
    }
    return nullptr;
  };
  if (IsIntegral(type)) return {compare_integers(x.real, y.real, IsSigned(type))};
  if (attributes.type == hlo::ComparisonType::kTotalOrder) {
    // The bits as signed integers, with the negative half reversed, are in total order.
    auto key = [&](Value* v) {
      const int bits = v->getType()->getScalarSizeInBits();
      Value* integer = b_.CreateBitCast(v, TypeLike(b_.getIntNTy(bits), v));
      Value* sign = b_.CreateAShr(integer, bits - 1);
      return b_.CreateXor(integer, b_.CreateLShr(sign, 1));
    };
    return {compare_integers(key(x.real), key(y.real), true)};
  }
  switch (direction) {
    case D::kEq:
      return {b_.CreateFCmpOEQ(x.real, y.real)};
    case D::kNe:
      return {b_.CreateFCmpUNE(x.real, y.real)};
    case D::kGe:
      return {b_.CreateFCmpOGE(x.real, y.real)};
    case D::kGt:
      return {b_.CreateFCmpOGT(x.real, y.real)};
    case D::kLe:
      return {b_.CreateFCmpOLE(x.real, y.real)};
    case D::kLt:
      return {b_.CreateFCmpOLT(x.real, y.real)};
  }
  Unsupported(instruction);
}

// ---------------------------------------------------------------------------------------------------------
// Conversions.

Element ElementwiseEmitter::Convert(const Element& x, ElementType from, ElementType to) {
  if (from == to) return x;
  if (hlo::IsComplex(to)) {
    ElementType part = hlo::RealType(to);
    Element real = Convert({x.real}, hlo::RealType(from), part);
    Value* imaginary = x.imaginary ? Convert({x.imaginary}, hlo::RealType(from), part).real
                                   : llvm::Constant::getNullValue(real.real->getType());
    return {real.real, imaginary};
  }
  if (hlo::IsComplex(from)) {
    if (to == ElementType::kPred) {
      return {b_.CreateOr(b_.CreateFCmpUNE(x.real, Float(x.real, 0.0)),
                          b_.CreateFCmpUNE(x.imaginary, Float(x.real, 0.0)))};
    }
    return Convert({x.real}, hlo::RealType(from), to);
  }
  llvm::Type* target = TypeLike(RegisterType(b_.getContext(), to), x.real);
  if (hlo::IsFloat(from)) {
    if (hlo::IsFloat(to)) {
      const bool from_double = from == ElementType::kF64;
      if (to == ElementType::kF64) return {from_double ? x.real : b_.CreateFPExt(x.real, target)};
      if (!from_double) return {Round(x.real, to)};
      if (to == ElementType::kF32) return {b_.CreateFPTrunc(x.real, target)};
      // f64 to 16 bits by way of f32, rounded to odd so that the second rounding sees what was
      // lost.
      Value* narrow = b_.CreateFPTrunc(x.real, target);
      Value* back = b_.CreateFPExt(narrow, x.real->getType());
      Value* bits = b_.CreateBitCast(narrow, TypeLike(b_.getInt32Ty(), x.real));
      Value* exact = b_.CreateFCmpUEQ(back, x.real);
      // Step to the neighbour towards zero where rounding went away from zero, then set the last
      // bit.
      Value* away = b_.CreateFCmpOGT(Abs(back), Abs(x.real));
      Value* truncated = b_.CreateSub(bits, b_.CreateZExt(away, bits->getType()));
      Value* odd = b_.CreateOr(truncated, Int(bits, 1));
      Value* joined = b_.CreateBitCast(b_.CreateSelect(exact, bits, odd), target);
      return {Round(joined, to)};
    }
    if (to == ElementType::kPred) return {b_.CreateFCmpUNE(x.real, Float(x.real, 0.0))};
    // Towards zero, saturating, NaN to 0.
    return {
        b_.CreateIntrinsic(IsSigned(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                           {target, x.real->getType()}, {x.real})};
  }
  // From an integer or pred.
  if (hlo::IsFloat(to)) {
    // Wide integers go to 16-bit floats by way of f64, which holds all but the widest exactly.
    const bool sixteen = to == ElementType::kF16 || to == ElementType::kBF16;
    if (sixteen && hlo::ByteWidth(from) >= 4) {
      llvm::Type* wide = TypeLike(b_.getDoubleTy(), x.real);
      Value* number =
          IsSigned(from) ? b_.CreateSIToFP(x.real, wide) : b_.CreateUIToFP(x.real, wide);
      return Convert({number}, ElementType::kF64, to);
    }
    Value* number =
        IsSigned(from) ? b_.CreateSIToFP(x.real, target) : b_.CreateUIToFP(x.real, target);
    return {Round(number, to)};
  }
  if (to == ElementType::kPred) return {b_.CreateICmpNE(x.real, Int(x.real, 0))};
  return {IsSigned(from) ? b_.CreateSExtOrTrunc(x.real, target)
                         : b_.CreateZExtOrTrunc(x.real, target)};
}

Element ElementwiseEmitter::BitcastConvert(const Element& x, ElementType from, ElementType to) {
  if (from == to) return x;
  if (hlo::IsComplex(from) || hlo::IsComplex(to)) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "the CPU engine does not compute bitcast_convert of complex numbers");
  }
  Value* memory = ToMemory(x.real, from);
  llvm::Type* target = TypeLike(MemoryType(b_.getContext(), to), x.real);
  return {FromMemory(b_.CreateBitCast(memory, target), to)};
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
