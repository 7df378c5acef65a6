// The arithmetic of one element-wise operation as LLVM IR, over scalars or vectors of lanes.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <span>

#include "hlo/instruction.h"

namespace cpu {

// A value in registers: a scalar or a vector of lanes. pred is i1; f16 and bf16 are held as float
// that has already been rounded to the type; a complex number is two values.
struct Element {
  llvm::Value* real = nullptr;
  llvm::Value* imaginary = nullptr;
};

// LLVM's type of an element in registers (the part's type for complex) and in memory.
llvm::Type* RegisterType(llvm::LLVMContext& context, hlo::ElementType type);
llvm::Type* MemoryType(llvm::LLVMContext& context, hlo::ElementType type);

// Emits at the builder's position.
class ElementwiseEmitter {
 public:
  explicit ElementwiseEmitter(llvm::IRBuilder<>& builder) : b_(builder) {}

  // All operands are scalars, or all are vectors of equally many lanes. Throws
  // hlo::Error(kUnimplemented).
  Element Emit(const hlo::Instruction& instruction, std::span<const Element> operands);
  Element Binary(hlo::Opcode opcode, hlo::ElementType type, const Element& x, const Element& y);
  Element Convert(const Element& x, hlo::ElementType from, hlo::ElementType to);
  // erf of f32 or f64 (of the wider type for the 16-bit ones).
  Element Erf(const Element& x, hlo::ElementType type);

  // A literal's element as a scalar constant.
  Element Constant(const hlo::Literal& literal, int64_t index);
  Element Zero(hlo::ElementType type);

  // Between registers and memory: pred is a byte there, 16-bit floats are 16 bits.
  llvm::Value* ToMemory(llvm::Value* part, hlo::ElementType type);
  llvm::Value* FromMemory(llvm::Value* part, hlo::ElementType type);
  // Off: results of 16-bit floats keep the precision of f32.
  void set_round(bool round) { round_ = round; }
  // Rounds a float result to f16 or bf16; others unchanged.
  llvm::Value* Round(llvm::Value* x, hlo::ElementType type);

 private:
  // Behind a fence: LLVM would compute in f16, which it does one element after the other, and for
  // the maximum of zero and NaN wrongly.
  llvm::Value* FromHalf(llvm::Value* half);
  // The half that the float was, if it was one.
  llvm::Value* ToHalf(llvm::Value* x);
  // The families are in files of their own: elementwise_float.cc, …
  [[noreturn]] static void Unsupported(const hlo::Instruction& instruction);
  Element Unary(const hlo::Instruction& instruction, const Element& x);
  Element ComplexUnary(const hlo::Instruction& instruction, const Element& x);
  llvm::Value* FloatUnary(const hlo::Instruction& instruction, llvm::Value* x);
  llvm::Value* IntegerUnary(const hlo::Instruction& instruction, llvm::Value* x);
  Element ComplexBinary(hlo::Opcode opcode, const Element& x, const Element& y);
  llvm::Value* FloatBinary(hlo::Opcode opcode, llvm::Value* x, llvm::Value* y);
  llvm::Value* IntegerBinary(hlo::Opcode opcode, hlo::ElementType type, llvm::Value* x,
                             llvm::Value* y);
  llvm::Value* Shift(hlo::Opcode opcode, llvm::Value* x, llvm::Value* amount);
  llvm::Value* Quotient(llvm::Value* x, llvm::Value* y, bool is_signed);
  llvm::Value* Rest(llvm::Value* x, llvm::Value* y, bool is_signed);
  llvm::Value* IntegerPower(hlo::ElementType type, llvm::Value* x, llvm::Value* y);
  Element Compare(const hlo::Instruction& instruction, const Element& x, const Element& y);
  llvm::Value* LowBits(llvm::Value* x, hlo::ElementType type);
  llvm::Value* Saturated(llvm::Value* x, hlo::ElementType type);
  llvm::Value* ReducePrecision(const hlo::Instruction& instruction, llvm::Value* x);
  Element BitcastConvert(const Element& x, hlo::ElementType from, hlo::ElementType to);
  Element ComplexMultiply(const Element& x, const Element& y);
  // The product of an infinite number and one that is not zero is infinite, as in C.
  Element ComplexMultiplyInfinite(const Element& x, const Element& y);
  // Where a part is infinite, infinite parts as ones and others as zeros; else the number, with
  // zeros for NaN.
  Element DirectionOf(const Element& x, llvm::Value** is_infinite);
  Element ComplexDivide(const Element& x, const Element& y);
  Element ComplexExp(const Element& x);
  Element ComplexExpm1(const Element& x);
  // A sixteenth of a number that is too large for its magnitude to be one; others as they are.
  Element ScaledDown(const Element& x, llvm::Value** is_large);
  // 2^64 times a number so small that its size would have few digits; others as they are.
  Element ScaledUp(const Element& x, llvm::Value** is_small);
  // |z|² - 1, to its last digits also where the two are almost the same.
  llvm::Value* SquareMinusOne(const Element& z);
  Element ComplexLog(const Element& x);
  Element ComplexLog1p(const Element& x);
  Element ComplexSqrt(const Element& x);
  Element ComplexCbrt(const Element& x);
  // Or cosine, as the opcode says.
  Element ComplexSine(hlo::Opcode opcode, const Element& x);
  Element ComplexSign(const Element& x);
  Element ComplexTanh(const Element& x);
  // The product, but zero (with its sign) where a factor is zero and the other infinite or NaN.
  llvm::Value* ProductOrZero(llvm::Value* x, llvm::Value* y);
  llvm::Value* IsInfinite(llvm::Value* x);
  // Of a number e^size · (cos angle + i sin angle): is the size infinite and the angle not finite?
  llvm::Value* IsSizeAlone(llvm::Value* size, llvm::Value* angle);

  llvm::Value* Maximum(llvm::Value* x, llvm::Value* y, bool maximum);
  llvm::Type* TypeLike(llvm::Type* element, llvm::Value* like);
  llvm::Value* Float(llvm::Value* like, double value);
  llvm::Value* Int(llvm::Value* like, int64_t value);
  llvm::Value* Abs(llvm::Value* x);
  llvm::Value* IntrinsicUnary(llvm::Intrinsic::ID id, llvm::Value* x);

  llvm::IRBuilder<>& b_;
  bool round_ = true;
};

}  // namespace cpu
