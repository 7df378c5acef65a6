// Between types: see elementwise_emitter.h.
#include "cpu/emit/elementwise_emitter.h"
#include "hlo/error.h"

#include <cmath>

namespace cpu {

using hlo::ElementType;
using llvm::Value;

namespace {

bool IsPartOfByte(ElementType type) { return hlo::IsInteger(type) && hlo::BitWidth(type) < 8; }

}  // namespace

Value* ElementwiseEmitter::LowBits(Value* x, ElementType type) {
  const int bits = hlo::BitWidth(type);
  if (hlo::IsUnsignedInteger(type)) return b_.CreateAnd(x, Int(x, (1 << bits) - 1));
  return b_.CreateAShr(b_.CreateShl(x, 8 - bits), 8 - bits);
}

// A float as an integer: towards zero, saturating, NaN to 0. The intrinsics that say so are
// computed number by number, not as vectors.
Value* ElementwiseEmitter::Saturated(Value* x, ElementType type) {
  const bool is_signed = hlo::IsSignedInteger(type);
  const int bits = hlo::BitWidth(type), digits = bits - (is_signed ? 1 : 0);
  const auto number = [&](int width, Value* of) {
    llvm::Type* integer = TypeLike(b_.getIntNTy(width), of);
    return is_signed ? b_.CreateFPToSI(of, integer) : b_.CreateFPToUI(of, integer);
  };
  Value* lowest = Float(x, is_signed ? -std::ldexp(1.0, digits) : 0.0);
  Value* bounded = b_.CreateSelect(b_.CreateFCmpOGT(x, lowest), x, lowest);  // as is NaN
  Value* result = nullptr;
  const int precision = x->getType()->getScalarType()->isDoubleTy() ? 53 : 24;
  if (digits <= precision) {
    Value* highest = Float(x, std::ldexp(1.0, digits) - 1);
    bounded = b_.CreateSelect(b_.CreateFCmpOLT(bounded, highest), bounded, highest);
    // Vectors of 32 bits are converted in one instruction.
    result = bits < 32 ? b_.CreateTrunc(b_.CreateFPToSI(bounded, TypeLike(b_.getInt32Ty(), x)),
                                        TypeLike(b_.getIntNTy(bits), x))
                       : number(bits, bounded);
  } else {
    Value* is_large = b_.CreateFCmpOGE(x, Float(x, std::ldexp(1.0, digits)));
    result = number(bits, b_.CreateSelect(is_large, lowest, bounded));
    llvm::APInt highest =
        is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
    result = b_.CreateSelect(is_large, llvm::ConstantInt::get(result->getType(), highest), result);
  }
  return b_.CreateSelect(b_.CreateFCmpUNO(x, x), Int(result, 0), result);
}

Element ElementwiseEmitter::Convert(const Element& x, ElementType from, ElementType to) {
  if (from == to) return x;
  // Four or two bits lie in a byte.
  const auto byte = [](ElementType type) {
    return hlo::IsSignedInteger(type) ? ElementType::kS8 : ElementType::kU8;
  };
  if (IsPartOfByte(from)) return Convert({LowBits(x.real, from)}, byte(from), to);
  if (IsPartOfByte(to)) return {LowBits(Convert(x, from, byte(to)).real, to)};
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
    return {Saturated(x.real, to)};
  }
  // From an integer or pred.
  if (hlo::IsFloat(to)) {
    // Wide integers go to 16-bit floats by way of f64, which holds all but the widest exactly.
    const bool sixteen = to == ElementType::kF16 || to == ElementType::kBF16;
    if (sixteen && hlo::ByteWidth(from) >= 4) {
      llvm::Type* wide = TypeLike(b_.getDoubleTy(), x.real);
      Value* number = hlo::IsSignedInteger(from) ? b_.CreateSIToFP(x.real, wide)
                                                 : b_.CreateUIToFP(x.real, wide);
      return Convert({number}, ElementType::kF64, to);
    }
    Value* number = hlo::IsSignedInteger(from) ? b_.CreateSIToFP(x.real, target)
                                               : b_.CreateUIToFP(x.real, target);
    return {Round(number, to)};
  }
  if (to == ElementType::kPred) return {b_.CreateICmpNE(x.real, Int(x.real, 0))};
  return {hlo::IsSignedInteger(from) ? b_.CreateSExtOrTrunc(x.real, target)
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

}  // namespace cpu
