// Arithmetic on complex numbers, by their parts: see elementwise_emitter.h.
#include "cpu/emit/elementwise_emitter.h"

#include <llvm/IR/Intrinsics.h>

#include "cpu/emit/vector_math.h"
#include "hlo/error.h"

namespace cpu {

using hlo::Opcode;
using llvm::Value;

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
    case Opcode::kExponentialMinusOne:
      return ComplexExpm1(x);
    case Opcode::kLog:
      return ComplexLog(x);
    case Opcode::kLogPlusOne:
      return ComplexLog1p(x);
    case Opcode::kLogistic: {
      Element e = ComplexExp({b_.CreateFNeg(x.real), b_.CreateFNeg(x.imaginary)});
      return ComplexDivide({one, zero}, {b_.CreateFAdd(e.real, one), e.imaginary});
    }
    case Opcode::kSqrt:
      return ComplexSqrt(x);
    case Opcode::kRsqrt:
      return ComplexDivide({one, zero}, ComplexSqrt(x));
    case Opcode::kCbrt:
      return ComplexCbrt(x);
    case Opcode::kSine:
    case Opcode::kCosine:
      return ComplexSine(instruction.opcode(), x);
    case Opcode::kTan: {
      // tan z = -i tanh(iz).
      Element t = ComplexTanh({b_.CreateFNeg(x.imaginary), x.real});
      return {t.imaginary, b_.CreateFNeg(t.real)};
    }
    case Opcode::kTanh:
      return ComplexTanh(x);
    case Opcode::kSign:
      return ComplexSign(x);
    case Opcode::kIsFinite: {
      Value* infinity = llvm::ConstantFP::getInfinity(x.real->getType());
      return {b_.CreateAnd(b_.CreateFCmpOLT(Abs(x.real), infinity),
                           b_.CreateFCmpOLT(Abs(x.imaginary), infinity))};
    }
    default:
      Unsupported(instruction);
  }
}

Element ElementwiseEmitter::ComplexExpm1(const Element& x) {
  VectorMath math(b_);
  // e^(a+bi) - 1 = expm1(a) cos b - 2 sin(b/2)^2 + i e^a sin b.
  Value* sine = math.Sin(b_.CreateFMul(x.imaginary, Float(x.real, 0.5)));
  Value* real = b_.CreateFSub(b_.CreateFMul(math.Expm1(x.real), math.Cos(x.imaginary)),
                              b_.CreateFMul(Float(x.real, 2.0), b_.CreateFMul(sine, sine)));
  return {real, b_.CreateFMul(math.Exp(x.real), math.Sin(x.imaginary))};
}

Element ElementwiseEmitter::ComplexLog1p(const Element& x) {
  VectorMath math(b_);
  Value* one = Float(x.real, 1.0);
  // log|1+z| = log1p(2a + a² + b²) / 2 next to zero; elsewhere the squares may overflow, and
  // next to -1 they cancel.
  Value* square = b_.CreateFAdd(b_.CreateFMul(x.real, b_.CreateFAdd(x.real, Float(x.real, 2.0))),
                                b_.CreateFMul(x.imaginary, x.imaginary));
  Value* half = Float(x.real, 0.5);
  Value* small =
      b_.CreateAnd(b_.CreateFCmpOLT(Abs(x.real), half), b_.CreateFCmpOLT(Abs(x.imaginary), half));
  const Element log = ComplexLog({b_.CreateFAdd(x.real, one), x.imaginary});
  return {b_.CreateSelect(small, b_.CreateFMul(half, math.Log1p(square)), log.real), log.imaginary};
}

Element ElementwiseEmitter::ComplexCbrt(const Element& x) {
  Value* zero = Float(x.real, 0.0);
  Value* third = Float(x.real, 1.0 / 3.0);
  Element log = ComplexLog(x);
  Element root = ComplexExp({b_.CreateFMul(log.real, third), b_.CreateFMul(log.imaginary, third)});
  Value* is_zero =
      b_.CreateAnd(b_.CreateFCmpOEQ(x.real, zero), b_.CreateFCmpOEQ(x.imaginary, zero));
  return {b_.CreateSelect(is_zero, zero, root.real),
          b_.CreateSelect(is_zero, zero, root.imaginary)};
}

Element ElementwiseEmitter::ComplexSine(hlo::Opcode opcode, const Element& x) {
  VectorMath math(b_);
  Value* one = Float(x.real, 1.0);
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
  if (opcode == Opcode::kSine) {
    return {b_.CreateFMul(sine, cosh), b_.CreateFMul(cosine, sinh)};
  }
  return {b_.CreateFMul(cosine, cosh), b_.CreateFNeg(b_.CreateFMul(sine, sinh))};
}

Element ElementwiseEmitter::ComplexSign(const Element& x) {
  VectorMath math(b_);
  Value* zero = Float(x.real, 0.0);
  Value* magnitude = math.Hypot(x.real, x.imaginary);
  Value* is_zero = b_.CreateFCmpOEQ(magnitude, zero);
  return {b_.CreateSelect(is_zero, zero, b_.CreateFDiv(x.real, magnitude)),
          b_.CreateSelect(is_zero, zero, b_.CreateFDiv(x.imaginary, magnitude))};
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

}  // namespace cpu
