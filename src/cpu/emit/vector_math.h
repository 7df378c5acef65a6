// Mathematical functions as straight-line LLVM IR over float or double, scalar or vector, so that
// loops that contain them stay free of calls where it matters (f32 exp, log, tanh, logistic, erf).
// The rest, and f64, call SLEEF's vector functions (1 ulp). Subnormal arguments and results are
// kept, NaN propagates.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace cpu {

class VectorMath {
 public:
  explicit VectorMath(llvm::IRBuilder<>& builder) : b_(builder) {}

  llvm::Value* Exp(llvm::Value* x);
  llvm::Value* Expm1(llvm::Value* x);
  llvm::Value* Exp2(llvm::Value* x);
  llvm::Value* Log(llvm::Value* x);
  llvm::Value* Log1p(llvm::Value* x);
  llvm::Value* Tanh(llvm::Value* x);
  llvm::Value* Logistic(llvm::Value* x);
  llvm::Value* Erf(llvm::Value* x);
  llvm::Value* Sin(llvm::Value* x) { return Library("sin", "u10", {x}); }
  llvm::Value* Cos(llvm::Value* x) { return Library("cos", "u10", {x}); }
  llvm::Value* Tan(llvm::Value* x) { return Library("tan", "u10", {x}); }
  llvm::Value* Cbrt(llvm::Value* x) { return Library("cbrt", "u10", {x}); }
  llvm::Value* Pow(llvm::Value* x, llvm::Value* y);
  llvm::Value* Atan2(llvm::Value* y, llvm::Value* x) { return Library("atan2", "u10", {y, x}); }
  llvm::Value* Hypot(llvm::Value* x, llvm::Value* y) { return Library("hypot", "u05", {x, y}); }
  // C's fmod: exact.
  llvm::Value* Fmod(llvm::Value* x, llvm::Value* y);

  llvm::Value* Fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* Constant(llvm::Value* like, double value);

 private:
  // c[0] + c[1] x + …, by Horner's rule with fused multiply-add.
  llvm::Value* Polynomial(llvm::Value* x, std::initializer_list<double> coefficients);
  // For x of float: n = round(x / ln 2) and r = x - n ln 2; returns {n as float, r}, n's integer in
  // `bits`.
  llvm::Value* ReduceByLn2(llvm::Value* x, llvm::Value** n_bits);
  // Of a number to which 1.5 * 2^23 was added: the integer next to it, as float and in `n_bits`.
  llvm::Value* Rounded(llvm::Value* shifted, llvm::Value** n_bits);
  llvm::Value* PowerOfTwo(llvm::Value* n);                       // n within [-126, 127]
  llvm::Value* TimesPowerOfTwo(llvm::Value* x, llvm::Value* n);  // n within [-252, 254]
  llvm::Value* Clamp(llvm::Value* x, double low, double high);   // NaN stays
  llvm::Value* Library(const char* name, const char* accuracy, std::vector<llvm::Value*> arguments);
  llvm::Value* IntConstant(llvm::Value* like, int64_t value);
  llvm::Type* IntTypeLike(llvm::Value* x);
  static bool IsDouble(llvm::Value* x) { return x->getType()->getScalarType()->isDoubleTy(); }

  llvm::IRBuilder<>& b_;
};

// Address of a function that generated code may call, by name; null if unknown. (SLEEF's scalar
// functions are named like its vector ones.)
void* LibraryFunctionAddress(const std::string& name);

}  // namespace cpu
