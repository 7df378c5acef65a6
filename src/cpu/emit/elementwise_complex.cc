// Arithmetic on complex numbers, by their parts: see elementwise_emitter.h.
#include "cpu/emit/elementwise_emitter.h"

#include <llvm/IR/Intrinsics.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "cpu/emit/vector_math.h"
#include "hlo/error.h"

namespace cpu {

using hlo::Opcode;
using llvm::Value;

namespace {

// e^x = e^reduced · scale. Where x is large neither is beyond the type's range, into which other
// factors of a product may bring it back.
struct LargeExponent {
  Value* is_large;
  Value* reduced;
  Value* scale;
};

LargeExponent ReduceLarge(llvm::IRBuilder<>& b, Value* x) {
  VectorMath math(b);
  const double limit = x->getType()->getScalarType()->isDoubleTy() ? 512 : 64;
  Value* is_large = b.CreateFCmpOGT(x, math.Constant(x, limit));
  return {is_large, b.CreateSelect(is_large, b.CreateFSub(x, math.Constant(x, limit)), x),
          b.CreateSelect(is_large, math.Constant(x, std::exp(limit)), math.Constant(x, 1.0))};
}

// sinh x = sinh · scale, cosh x = cosh · scale: each of them may be beyond the type's range.
struct Hyperbolic {
  Value* sinh;
  Value* cosh;
  Value* scale;
};

Hyperbolic HyperbolicOf(llvm::IRBuilder<>& b, Value* x) {
  VectorMath math(b);
  Value* zero = math.Constant(x, 0.0);
  Value* half = math.Constant(x, 0.5);
  Value* one = math.Constant(x, 1.0);
  const auto [large, reduced, scale] =
      ReduceLarge(b, b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
  // With m = e^|x| - 1, sinh |x| = (m + m / (m + 1)) / 2 is exact for small x.
  Value* m = math.Expm1(reduced);
  Value* e = b.CreateFAdd(m, one);
  Value* inverse = b.CreateSelect(large, zero, b.CreateFDiv(one, e));
  Value* quotient = b.CreateSelect(large, one, b.CreateFDiv(m, e));
  Value* sinh = b.CreateFMul(half, b.CreateFAdd(m, quotient));
  return {b.CreateCopySign(sinh, x), b.CreateFMul(half, b.CreateFAdd(e, inverse)), scale};
}

}  // namespace

// Functions of infinities and NaN are as in C's Annex G. Where the size is infinite and the angle
// is none, what the size says remains; and zero times what is not known is zero.
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

Value* ElementwiseEmitter::ProductOrZero(Value* x, Value* y) {
  Value* zero = Float(x, 0.0);
  Value* is_zero = b_.CreateOr(b_.CreateFCmpOEQ(x, zero), b_.CreateFCmpOEQ(y, zero));
  Value* signed_zero =
      b_.CreateFMul(b_.CreateCopySign(zero, x), b_.CreateCopySign(Float(x, 1.0), y));
  return b_.CreateSelect(is_zero, signed_zero, b_.CreateFMul(x, y));
}

Value* ElementwiseEmitter::IsInfinite(Value* x) {
  return b_.CreateFCmpOEQ(Abs(x), llvm::ConstantFP::getInfinity(x->getType()));
}

Value* ElementwiseEmitter::IsSizeAlone(Value* size, Value* angle) {
  Value* infinity = llvm::ConstantFP::getInfinity(size->getType());
  return b_.CreateAnd(IsInfinite(size), b_.CreateNot(b_.CreateFCmpOLT(Abs(angle), infinity)));
}

Element ElementwiseEmitter::ComplexSine(hlo::Opcode opcode, const Element& x) {
  VectorMath math(b_);
  // sin(a+bi) = sin a cosh b + i cos a sinh b; cos(a+bi) = cos a cosh b - i sin a sinh b.
  const Hyperbolic of_b = HyperbolicOf(b_, x.imaginary);
  Value* sine = math.Sin(x.real);
  // Which infinity it is then, C leaves open: the C library's is positive.
  Value* one = Float(x.real, 1.0);
  Value* unit = opcode == Opcode::kSine ? b_.CreateCopySign(one, x.imaginary) : one;
  Value* cosine = b_.CreateSelect(IsSizeAlone(x.imaginary, x.real), unit, math.Cos(x.real));
  auto scaled = [&](Value* part) { return b_.CreateFMul(part, of_b.scale); };
  if (opcode == Opcode::kSine) {
    return {scaled(ProductOrZero(sine, of_b.cosh)), scaled(ProductOrZero(cosine, of_b.sinh))};
  }
  return {scaled(b_.CreateFMul(cosine, of_b.cosh)),
          b_.CreateFNeg(scaled(ProductOrZero(sine, of_b.sinh)))};
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
  const auto [large, reduced, scale] = ReduceLarge(b_, x.real);
  Value* e = math.Exp(reduced);
  Value* real = b_.CreateFMul(b_.CreateFMul(e, math.Cos(x.imaginary)), scale);
  Value* imaginary = b_.CreateFMul(b_.CreateFMul(e, math.Sin(x.imaginary)), scale);
  Value* is_real = b_.CreateFCmpOEQ(x.imaginary, Float(x.real, 0.0));
  imaginary = b_.CreateSelect(is_real, x.imaginary, imaginary);
  // 0 + 0i, or infinity with NaN beside it.
  Value* size_alone = IsSizeAlone(x.real, x.imaginary);
  Value* rest = b_.CreateCopySign(b_.CreateFSub(e, e), x.imaginary);
  return {b_.CreateSelect(size_alone, e, real), b_.CreateSelect(size_alone, rest, imaginary)};
}

Element ElementwiseEmitter::ScaledDown(const Element& x, Value** is_large) {
  const bool is_double = x.real->getType()->getScalarType()->isDoubleTy();
  const double limit =
      (is_double ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max()) / 4;
  *is_large = b_.CreateFCmpOGT(b_.CreateFAdd(Abs(x.real), Abs(x.imaginary)), Float(x.real, limit));
  Value* scale = b_.CreateSelect(*is_large, Float(x.real, 1.0 / 16), Float(x.real, 1.0));
  return {b_.CreateFMul(x.real, scale), b_.CreateFMul(x.imaginary, scale)};
}

Element ElementwiseEmitter::ScaledUp(const Element& x, Value** is_small) {
  const bool is_double = x.real->getType()->getScalarType()->isDoubleTy();
  const double least =
      is_double ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  *is_small =
      b_.CreateFCmpOLT(b_.CreateFAdd(Abs(x.real), Abs(x.imaginary)), Float(x.real, 4 * least));
  Value* scale = b_.CreateSelect(*is_small, Float(x.real, 0x1p64), Float(x.real, 1.0));
  return {b_.CreateFMul(x.real, scale), b_.CreateFMul(x.imaginary, scale)};
}

Element ElementwiseEmitter::ComplexLog(const Element& x) {
  VectorMath math(b_);
  Value *is_large, *is_small;
  const Element z = ScaledUp(ScaledDown(x, &is_large), &is_small);
  Value* back = b_.CreateSelect(
      is_large, Float(x.real, 4 * std::numbers::ln2),
      b_.CreateSelect(is_small, Float(x.real, -64 * std::numbers::ln2), Float(x.real, 0.0)));
  // Next to size 1, log|z| = log1p(|z|² - 1) / 2, where log1p e = log(1 + e) + what 1 + e lost.
  Value* one = Float(x.real, 1.0);
  Value* half = Float(x.real, 0.5);
  Value* excess = SquareMinusOne(z);
  Value* is_near = b_.CreateFCmpOLT(Abs(excess), half);
  Value* square = b_.CreateFAdd(one, excess);
  Value* lost = b_.CreateFDiv(b_.CreateFSub(excess, b_.CreateFSub(square, one)), square);
  Value* log = math.Log(b_.CreateSelect(is_near, square, math.Hypot(z.real, z.imaginary)));
  Value* near = b_.CreateFMul(half, b_.CreateFAdd(log, lost));
  return {b_.CreateSelect(is_near, near, b_.CreateFAdd(log, back)),
          math.Atan2(x.imaginary, x.real)};
}

Value* ElementwiseEmitter::SquareMinusOne(const Element& z) {
  VectorMath math(b_);
  Value* real = b_.CreateFMul(z.real, z.real);
  Value* imaginary = b_.CreateFMul(z.imaginary, z.imaginary);
  Value* lost = b_.CreateFAdd(math.Fma(z.real, z.real, b_.CreateFNeg(real)),
                              math.Fma(z.imaginary, z.imaginary, b_.CreateFNeg(imaginary)));
  Value* real_larger = b_.CreateFCmpOGT(real, imaginary);
  Value* large = b_.CreateSelect(real_larger, real, imaginary);
  Value* small = b_.CreateSelect(real_larger, imaginary, real);
  return b_.CreateFAdd(b_.CreateFAdd(b_.CreateFSub(large, Float(z.real, 1.0)), small), lost);
}

Element ElementwiseEmitter::ComplexSqrt(const Element& x) {
  VectorMath math(b_);
  // With t = sqrt((|a| + |z|) / 2): for a >= 0 it is t + i b / 2t, else |b| / 2t + i t sign(b).
  Value *is_large, *is_small;
  const Element z = ScaledUp(ScaledDown(x, &is_large), &is_small);
  Value* half = Float(x.real, 0.5);
  Value* zero = Float(x.real, 0.0);
  Value* one = Float(x.real, 1.0);
  Value* back = b_.CreateSelect(is_large, Float(x.real, 4.0),
                                b_.CreateSelect(is_small, Float(x.real, 0x1p-32), one));
  Value* magnitude = math.Hypot(z.real, z.imaginary);
  Value* t = IntrinsicUnary(llvm::Intrinsic::sqrt,
                            b_.CreateFMul(half, b_.CreateFAdd(Abs(z.real), magnitude)));
  Value* is_zero = b_.CreateFCmpOEQ(magnitude, zero);
  t = b_.CreateFMul(t, back);
  Value* other = b_.CreateFDiv(x.imaginary, b_.CreateFAdd(t, t));
  other = b_.CreateSelect(is_zero, x.imaginary, other);
  Value* positive = b_.CreateFCmpOGE(x.real, zero);
  Value* real = b_.CreateSelect(positive, t, Abs(other));
  Value* imaginary = b_.CreateSelect(
      positive, other, b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, t, x.imaginary));
  // Of an infinite b both parts are infinite, whatever a is.
  Value* infinite = IsInfinite(x.imaginary);
  return {b_.CreateSelect(infinite, Abs(x.imaginary), real),
          b_.CreateSelect(infinite, x.imaginary, imaginary)};
}

Element ElementwiseEmitter::ComplexTanh(const Element& x) {
  VectorMath math(b_);
  // tanh(a+bi) = (T (1 + t²) + i t / cosh² a) / (1 + T² t²) with T = tanh a, t = tan b.
  Value* zero = Float(x.real, 0.0);
  Value* one = Float(x.real, 1.0);
  Value* tanh = math.Tanh(x.real);
  Value* tan = b_.CreateSelect(IsSizeAlone(x.real, x.imaginary),
                               b_.CreateCopySign(zero, x.imaginary), math.Tan(x.imaginary));
  Value* tanh_square = b_.CreateFMul(tanh, tanh);
  Value* tan_square = b_.CreateFMul(tan, tan);
  Value* denominator = b_.CreateFAdd(one, b_.CreateFMul(tanh_square, tan_square));
  Value* real = b_.CreateFDiv(b_.CreateFMul(tanh, b_.CreateFAdd(one, tan_square)), denominator);
  // 1 / cosh a = 2 e / (1 + e²) with e = exp -|a|.
  Value* e = math.Exp(b_.CreateFNeg(Abs(x.real)));
  Value* secant = b_.CreateFDiv(b_.CreateFAdd(e, e), b_.CreateFAdd(one, b_.CreateFMul(e, e)));
  Value* imaginary = b_.CreateFDiv(b_.CreateFMul(tan, b_.CreateFMul(secant, secant)), denominator);
  return {b_.CreateSelect(b_.CreateFCmpOEQ(x.real, zero), x.real, real),
          b_.CreateSelect(b_.CreateFCmpOEQ(x.imaginary, zero), x.imaginary, imaginary)};
}

Element ElementwiseEmitter::ComplexMultiply(const Element& x, const Element& y) {
  return {b_.CreateFSub(b_.CreateFMul(x.real, y.real), b_.CreateFMul(x.imaginary, y.imaginary)),
          b_.CreateFAdd(b_.CreateFMul(x.real, y.imaginary), b_.CreateFMul(x.imaginary, y.real))};
}

Element ElementwiseEmitter::DirectionOf(const Element& x, Value** is_infinite) {
  Value* real_infinite = IsInfinite(x.real);
  Value* imaginary_infinite = IsInfinite(x.imaginary);
  *is_infinite = b_.CreateOr(real_infinite, imaginary_infinite);
  auto part = [&](Value* value, Value* infinite) {
    Value* zero = Float(value, 0.0);
    Value* unit = b_.CreateSelect(infinite, Float(value, 1.0), zero);
    Value* number = b_.CreateSelect(b_.CreateFCmpUNO(value, value), zero, value);
    return b_.CreateCopySign(b_.CreateSelect(*is_infinite, unit, number), value);
  };
  return {part(x.real, real_infinite), part(x.imaginary, imaginary_infinite)};
}

Element ElementwiseEmitter::ComplexMultiplyInfinite(const Element& x, const Element& y) {
  Value* x_infinite;
  Value* y_infinite;
  const Element towards = ComplexMultiply(DirectionOf(x, &x_infinite), DirectionOf(y, &y_infinite));
  const Element product = ComplexMultiply(x, y);
  Value* infinity = llvm::ConstantFP::getInfinity(x.real->getType());
  Value* is_nan = b_.CreateAnd(b_.CreateFCmpUNO(product.real, product.real),
                               b_.CreateFCmpUNO(product.imaginary, product.imaginary));
  Value* lost = b_.CreateAnd(is_nan, b_.CreateOr(x_infinite, y_infinite));
  return {b_.CreateSelect(lost, b_.CreateFMul(infinity, towards.real), product.real),
          b_.CreateSelect(lost, b_.CreateFMul(infinity, towards.imaginary), product.imaginary)};
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
  // By zero, whatever its sign: infinities with the parts' signs.
  Value* by_zero = b_.CreateAnd(b_.CreateFCmpOEQ(y.real, Float(y.real, 0.0)),
                                b_.CreateFCmpOEQ(y.imaginary, Float(y.real, 0.0)));
  Value* zero = Float(y.real, 0.0);
  return {b_.CreateSelect(by_zero, b_.CreateFDiv(x.real, zero), real),
          b_.CreateSelect(by_zero, b_.CreateFDiv(x.imaginary, zero), imaginary)};
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
      const Element result = ComplexExp(ComplexMultiplyInfinite(ComplexLog(x), y));
      // Whatever the base is, with exponent 0 it is 1.
      Value* zero = Float(x.real, 0.0);
      Value* exponent_zero =
          b_.CreateAnd(b_.CreateFCmpOEQ(y.real, zero), b_.CreateFCmpOEQ(y.imaginary, zero));
      return {b_.CreateSelect(exponent_zero, Float(x.real, 1.0), result.real),
              b_.CreateSelect(exponent_zero, zero, result.imaginary)};
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
