#include "cpu/emit/vector_math.h"

#include <dlfcn.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/host.h"

namespace cpu {
namespace {

using llvm::Value;

int Lanes(Value* x) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

}  // namespace

Value* VectorMath::Constant(Value* like, double value) {
  return llvm::ConstantFP::get(like->getType(), value);
}

llvm::Type* VectorMath::IntTypeLike(Value* x) {
  llvm::Type* element = b_.getIntNTy(x->getType()->getScalarSizeInBits());
  int lanes = Lanes(x);
  return lanes == 1 && !x->getType()->isVectorTy() ? element
                                                   : llvm::FixedVectorType::get(element, lanes);
}

Value* VectorMath::IntConstant(Value* like, int64_t value) {
  return llvm::ConstantInt::getSigned(IntTypeLike(like), value);
}

Value* VectorMath::Fma(Value* a, Value* b, Value* c) {
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

Value* VectorMath::Polynomial(Value* x, std::initializer_list<double> coefficients) {
  auto it = std::rbegin(coefficients);
  Value* sum = Constant(x, *it++);
  for (; it != std::rend(coefficients); ++it) sum = Fma(sum, x, Constant(x, *it));
  return sum;
}

// Adding 1.5 * 2^23 rounds to an integer and leaves it in the low mantissa bits.
constexpr double kRounding = 12582912.0;

Value* VectorMath::Rounded(Value* shifted, Value** n_bits) {
  *n_bits = b_.CreateSub(b_.CreateBitCast(shifted, IntTypeLike(shifted)),
                         IntConstant(shifted, 0x4b400000));
  return b_.CreateFSub(shifted, Constant(shifted, kRounding));
}

Value* VectorMath::ReduceByLn2(Value* x, Value** n_bits) {
  Value* n = Rounded(Fma(x, Constant(x, 1.4426950408889634), Constant(x, kRounding)), n_bits);
  Value* r = Fma(n, Constant(x, -0.693145751953125), x);
  return Fma(n, Constant(x, -1.42860682030941723212e-6), r);
}

Value* VectorMath::PowerOfTwo(Value* n) {
  Value* bits = b_.CreateShl(b_.CreateAdd(n, llvm::ConstantInt::get(n->getType(), 127)), 23);
  llvm::Type* type = b_.getFloatTy();
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(n->getType())) {
    type = llvm::FixedVectorType::get(type, vector->getNumElements());
  }
  return b_.CreateBitCast(bits, type);
}

Value* VectorMath::TimesPowerOfTwo(Value* x, Value* n) {
  // Two factors, since 2^n alone leaves the range of normal numbers.
  Value* half = b_.CreateAShr(n, 1);
  return b_.CreateFMul(b_.CreateFMul(x, PowerOfTwo(half)), PowerOfTwo(b_.CreateSub(n, half)));
}

Value* VectorMath::Clamp(Value* x, double low, double high) {
  // Comparisons that are false for NaN keep it.
  Value* bound = Constant(x, high);
  x = b_.CreateSelect(b_.CreateFCmpOGT(x, bound), bound, x);
  bound = Constant(x, low);
  return b_.CreateSelect(b_.CreateFCmpOLT(x, bound), bound, x);
}

Value* VectorMath::Exp(Value* x) {
  if (IsDouble(x)) return Library("exp", "u10", {x});
  x = Clamp(x, -104, 89);  // beyond these bounds the result is 0 or infinity
  Value* n;
  Value* r = ReduceByLn2(x, &n);
  Value* q = Polynomial(
      r, {0.5, 0.166665181517601, 0.04166620597243309, 0.008368917740881443, 0.001395053812302649});
  Value* p = Fma(b_.CreateFMul(r, r), q, r);
  return TimesPowerOfTwo(b_.CreateFAdd(p, Constant(x, 1.0)), n);
}

Value* VectorMath::Expm1(Value* x) {
  if (IsDouble(x)) return Library("expm1", "u10", {x});
  constexpr double kLarge = 20;
  Value* n;
  Value* r = ReduceByLn2(Clamp(x, -kLarge, kLarge), &n);
  Value* q = Polynomial(
      r, {0.5, 0.166665181517601, 0.04166620597243309, 0.008368917740881443, 0.001395053812302649});
  Value* p = Fma(b_.CreateFMul(r, r), q, r);
  Value* scale = PowerOfTwo(n);
  Value* result = Fma(scale, p, b_.CreateFSub(scale, Constant(x, 1.0)));
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, Constant(x, 0.0)), x, result);
  return b_.CreateSelect(b_.CreateFCmpOGT(x, Constant(x, kLarge)), Exp(x), result);
}

Value* VectorMath::Log(Value* x) {
  if (IsDouble(x)) return Library("log", "u10", {x});
  Value* zero = Constant(x, 0.0);
  Value* infinity = llvm::ConstantFP::getInfinity(x->getType());
  // Subnormals are scaled up first.
  Value* tiny = b_.CreateFCmpOLT(x, Constant(x, 1.17549435e-38));
  Value* scaled = b_.CreateSelect(tiny, b_.CreateFMul(x, Constant(x, 8388608.0)), x);
  Value* bits = b_.CreateSub(b_.CreateBitCast(scaled, IntTypeLike(x)), IntConstant(x, 0x3f3504f3));
  Value* exponent = b_.CreateAShr(bits, 23);
  exponent = b_.CreateSub(exponent, b_.CreateSelect(tiny, IntConstant(x, 23), IntConstant(x, 0)));
  Value* mantissa =
      b_.CreateAdd(b_.CreateAnd(bits, IntConstant(x, 0x7fffff)), IntConstant(x, 0x3f3504f3));
  Value* f = b_.CreateFSub(b_.CreateBitCast(mantissa, x->getType()), Constant(x, 1.0));
  Value* e = b_.CreateSIToFP(exponent, x->getType());
  Value* p = Polynomial(f, {0.3333331048488617, -0.24999986588954926, 0.20002226531505585,
                            -0.16669249534606934, 0.14218655228614807, -0.12384368479251862,
                            0.11873012781143188, -0.11789704859256744, 0.06915165483951569});
  Value* square = b_.CreateFMul(f, f);
  Value* tail = b_.CreateFMul(b_.CreateFMul(square, f), p);
  tail = Fma(e, Constant(x, 1.42860682030941723212e-6), tail);
  tail = Fma(square, Constant(x, -0.5), tail);
  Value* result = b_.CreateFAdd(tail, f);
  result = Fma(e, Constant(x, 0.693145751953125), result);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, infinity), infinity, result);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, zero),
                           llvm::ConstantFP::getInfinity(x->getType(), /*Negative=*/true), result);
  return b_.CreateSelect(b_.CreateFCmpULT(x, zero), llvm::ConstantFP::getNaN(x->getType()), result);
}

Value* VectorMath::Log1p(Value* x) {
  if (IsDouble(x)) {
    // The library says infinity for what is next to the largest number.
    Value* huge = b_.CreateFCmpOGT(x, Constant(x, 1e300));
    Value* near = b_.CreateSelect(huge, b_.CreateFMul(x, Constant(x, 0x1p-64)), x);
    Value* log = Library("log1p", "u10", {near});
    return b_.CreateSelect(huge, b_.CreateFAdd(log, Constant(x, 64 * std::numbers::ln2)), log);
  }
  Value* one = Constant(x, 1.0);
  Value* u = b_.CreateFAdd(x, one);
  // What the addition lost, relative to u.
  Value* lost = b_.CreateFDiv(b_.CreateFSub(x, b_.CreateFSub(u, one)), u);
  Value* log = Log(u);
  Value* result = b_.CreateFAdd(log, lost);
  // Infinite where u is 0 or infinity, and there `lost` is not a number.
  Value* finite = b_.CreateAnd(b_.CreateFCmpOGT(u, Constant(x, 0.0)),
                               b_.CreateFCmpOLT(u, llvm::ConstantFP::getInfinity(x->getType())));
  result = b_.CreateSelect(finite, result, log);
  // Tiny arguments are their own logarithm; this keeps subnormals and the sign of zero.
  Value* magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  return b_.CreateSelect(b_.CreateFCmpOLT(magnitude, Constant(x, 1e-8)), x, result);
}

Value* VectorMath::Tanh(Value* x) {
  if (IsDouble(x)) return Library("tanh", "u10", {x});
  Value* magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* u = b_.CreateFMul(x, x);
  Value* p = Polynomial(u, {-0.3333333134651184, 0.13333210349082947, -0.05394720286130905,
                            0.021702967584133148, -0.008182673715054989, 0.0021475369576364756});
  Value* small = Fma(b_.CreateFMul(u, x), p, x);
  Value* one = Constant(x, 1.0);
  Value* e = Exp(b_.CreateFAdd(magnitude, magnitude));
  Value* large = b_.CreateFSub(one, b_.CreateFDiv(Constant(x, 2.0), b_.CreateFAdd(e, one)));
  Value* result = b_.CreateSelect(b_.CreateFCmpOLT(magnitude, Constant(x, 0.625)), small, large);
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, x);  // -0 has a sign, too
}

Value* VectorMath::Logistic(Value* x) {
  Value* one = Constant(x, 1.0);
  return b_.CreateFDiv(one, b_.CreateFAdd(one, Exp(b_.CreateFNeg(x))));
}

Value* VectorMath::Erf(Value* x) {
  if (IsDouble(x)) return Library("erf", "u10", {x});
  Value* magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* u = b_.CreateFMul(x, x);
  Value* p = Polynomial(u, {1.128379225730896, -0.37612637877464294, 0.11283782869577408,
                            -0.02686544507741928, 0.005221074912697077, -0.00084847112884745,
                            0.00011270543473074213, -9.68013409874402e-06});
  Value* small = b_.CreateFMul(x, p);
  Value* four = Constant(x, 4.0);
  Value* bounded = b_.CreateSelect(b_.CreateFCmpOGT(magnitude, four), four, magnitude);
  Value* q = Polynomial(
      bounded, {1.128406047821045, 0.6364453434944153, 0.10326732695102692, -0.019924171268939972,
                0.0005700867041014135, 0.00125465402379632, -0.0005079931579530239,
                0.00010585560812614858, -1.2211093235273058e-05, 6.16709826317674e-07});
  Value* e = Exp(b_.CreateFNeg(b_.CreateFMul(bounded, q)));
  Value* large =
      b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, b_.CreateFSub(Constant(x, 1.0), e), x);
  return b_.CreateSelect(b_.CreateFCmpOLT(magnitude, Constant(x, 1.0)), small, large);
}

Value* VectorMath::Exp2(Value* x) {
  if (IsDouble(x)) return Library("exp2", "u10", {x});
  x = Clamp(x, -151, 129);  // beyond these bounds the result is 0 or infinity
  Value* n;
  // What is left of x behind a whole number is exact.
  Value* r = b_.CreateFSub(x, Rounded(b_.CreateFAdd(x, Constant(x, kRounding)), &n));
  Value* p = Polynomial(
      r, {1.0, 0.6931471807045319, 0.24022651066561804, 0.05550410365991105, 0.00961803813198231,
          0.0013333935055636398, 0.00015466756339619617, 1.5196156564661512e-05});
  return TimesPowerOfTwo(p, n);
}

// Powers of two take a fraction of the time of others.
Value* VectorMath::Pow(Value* x, Value* y) {
  if (llvm::PatternMatch::match(x, llvm::PatternMatch::m_SpecificFP(2.0))) return Exp2(y);
  return Library("pow", "u10", {x, y});
}

Value* VectorMath::Fmod(Value* x, Value* y) {
  const auto fmod = [&](Value* a, Value* b) { return Library("fmod", "", {a, b}); };
  // SLEEF's is NaN where the quotient overflows; that of two floats is none too large as a double.
  if (!IsDouble(x)) {
    llvm::Type* wide = x->getType()->getWithNewType(b_.getDoubleTy());
    Value* remainder = fmod(b_.CreateFPExt(x, wide), b_.CreateFPExt(y, wide));
    return b_.CreateFPTrunc(remainder, x->getType());
  }
  // The remainder by y is that of the remainder by a multiple of y, so that no quotient need be
  // larger than 2^1023.
  const auto multiple = [&](Value* of) {
    Value* is_small =
        b_.CreateFCmpOLT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, of), Constant(of, 1.0));
    return b_.CreateSelect(is_small, b_.CreateFMul(of, Constant(of, 0x1p1023)), of);
  };
  Value* large = multiple(y);
  return fmod(fmod(fmod(x, multiple(large)), large), y);
}

namespace {

// Numbers [begin, begin + width) of a vector; behind its end its last one again.
Value* PartOf(llvm::IRBuilder<>& b, Value* vector, int begin, int width) {
  const int last = Lanes(vector) - 1;
  std::vector<int> lanes;
  for (int i = 0; i < width; ++i) lanes.push_back(std::min(begin + i, last));
  return b.CreateShuffleVector(vector, lanes);
}

// `whole`, a vector of `lanes` (null: undefined), with `part` from `begin` on.
Value* WithPart(llvm::IRBuilder<>& b, Value* whole, Value* part, int begin, int lanes) {
  const int width = Lanes(part);
  std::vector<int> widen, blend;
  for (int i = 0; i < lanes; ++i) {
    widen.push_back(i >= begin && i < begin + width ? i - begin : llvm::PoisonMaskElem);
    blend.push_back(i >= begin ? lanes + i : i);
  }
  Value* wide = b.CreateShuffleVector(part, widen);
  return whole == nullptr ? wide : b.CreateShuffleVector(whole, wide, blend);
}

// SLEEF's function for arguments of this type: a number, or a vector of the machine's length.
Value* CallSleef(llvm::IRBuilder<>& b, const std::string& name, std::string_view accuracy,
                 const std::vector<Value*>& arguments) {
  llvm::Type* type = arguments[0]->getType();
  const bool is_double = type->getScalarType()->isDoubleTy();
  std::string symbol = "Sleef_" + name;
  if (type->isVectorTy()) {
    symbol += (is_double ? "d" : "f") + std::to_string(Lanes(arguments[0]));
  } else {
    symbol += is_double ? "" : "f";
  }
  if (!accuracy.empty()) (symbol += "_") += accuracy;
  const std::vector<llvm::Type*> types(arguments.size(), type);
  auto callee = b.GetInsertBlock()->getModule()->getOrInsertFunction(
      symbol, llvm::FunctionType::get(type, types, false));
  if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    function->setDoesNotAccessMemory();
    function->setDoesNotThrow();
  }
  return b.CreateCall(callee, arguments);
}

}  // namespace

// Vectors are computed in pieces of the machine's length; a shorter one is padded.
Value* VectorMath::Library(const char* name, const char* accuracy, std::vector<Value*> arguments) {
  const int lanes = Lanes(arguments[0]);
  const int native = Host().vector_bytes / (IsDouble(arguments[0]) ? 8 : 4);
  if (!arguments[0]->getType()->isVectorTy() || lanes == native) {
    return CallSleef(b_, name, accuracy, arguments);
  }
  Value* result = nullptr;
  for (int begin = 0; begin < lanes; begin += native) {
    std::vector<Value*> parts;
    for (Value* argument : arguments) parts.push_back(PartOf(b_, argument, begin, native));
    result = WithPart(b_, result, CallSleef(b_, name, accuracy, parts), begin, lanes);
  }
  return result;
}

void* LibraryFunctionAddress(const std::string& name) {
  static void* sleef = dlopen("libsleef.so.3", RTLD_NOW | RTLD_LOCAL);
  if (name.starts_with("Sleef_")) return sleef ? dlsym(sleef, name.c_str()) : nullptr;
  if (name == "memcpy") return reinterpret_cast<void*>(&memcpy);
  if (name == "memset") return reinterpret_cast<void*>(&memset);
  if (name == "memmove") return reinterpret_cast<void*>(&memmove);
  return dlsym(RTLD_DEFAULT, name.c_str());
}

}  // namespace cpu
