#include "cpu/emit/elementwise_emitter.h"

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>

#include "hlo/error.h"

namespace cpu {
namespace {

using hlo::ElementType;
using hlo::Opcode;
using llvm::Value;
using llvm::Intrinsic::ID;

bool IsIntegral(ElementType type) { return hlo::IsInteger(type) || type == ElementType::kPred; }

struct Predicates {
  llvm::CmpInst::Predicate of_signed, of_unsigned, of_floats;  // NaN equals nothing, has no order
};

Predicates PredicatesOf(hlo::ComparisonDirection direction) {
  using enum hlo::ComparisonDirection;
  using P = llvm::CmpInst;
  switch (direction) {
    case kEq:
      return {P::ICMP_EQ, P::ICMP_EQ, P::FCMP_OEQ};
    case kNe:
      return {P::ICMP_NE, P::ICMP_NE, P::FCMP_UNE};
    case kGe:
      return {P::ICMP_SGE, P::ICMP_UGE, P::FCMP_OGE};
    case kGt:
      return {P::ICMP_SGT, P::ICMP_UGT, P::FCMP_OGT};
    case kLe:
      return {P::ICMP_SLE, P::ICMP_ULE, P::FCMP_OLE};
    case kLt:
      break;
  }
  return {P::ICMP_SLT, P::ICMP_ULT, P::FCMP_OLT};
}

// True if the result is exact in the operands' type whatever they are, so that nothing is to round:
// one of them, its sign changed, or a whole number no longer than it.
bool IsExact(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAbs:
    case Opcode::kCeil:
    case Opcode::kFloor:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kNegate:
    case Opcode::kRoundNearestAfz:
    case Opcode::kRoundNearestEven:
    case Opcode::kSign:
      return true;
    default:
      return false;
  }
}

}  // namespace

void ElementwiseEmitter::Unsupported(const hlo::Instruction& instruction) {
  throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                   "the CPU engine does not compute " + instruction.ToString());
}

llvm::Type* MemoryType(llvm::LLVMContext& context, ElementType type) {
  switch (type) {
    case ElementType::kPred:
    case ElementType::kS2:
    case ElementType::kS4:
    case ElementType::kS8:
    case ElementType::kU2:
    case ElementType::kU4:
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

Value* ElementwiseEmitter::FromHalf(Value* half) {
  Value* wide = b_.CreateFPExt(half, TypeLike(b_.getFloatTy(), half));
  return b_.CreateArithmeticFence(wide, wide->getType());
}

Value* ElementwiseEmitter::ToHalf(Value* x) {
  if (auto* fence = llvm::dyn_cast<llvm::IntrinsicInst>(x);
      fence && fence->getIntrinsicID() == llvm::Intrinsic::arithmetic_fence) {
    auto* wide = llvm::dyn_cast<llvm::FPExtInst>(fence->getArgOperand(0));
    if (wide && wide->getSrcTy()->getScalarType()->isHalfTy()) return wide->getOperand(0);
  }
  return b_.CreateFPTrunc(x, TypeLike(b_.getHalfTy(), x));
}

Value* ElementwiseEmitter::Round(Value* x, ElementType type) {
  if (!round_) return x;
  if (type == ElementType::kF16) {
    return FromHalf(ToHalf(x));
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
    return b_.CreateBitCast(ToHalf(part), TypeLike(b_.getInt16Ty(), part));
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
    return FromHalf(b_.CreateBitCast(part, TypeLike(b_.getHalfTy(), part)));
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

Element ElementwiseEmitter::Unary(const hlo::Instruction& instruction, const Element& x) {
  const ElementType from = instruction.operand(0)->element_type();
  if (hlo::IsComplex(from)) return ComplexUnary(instruction, x);
  if (instruction.opcode() == Opcode::kReal) return x;
  if (instruction.opcode() == Opcode::kImag)
    return {llvm::Constant::getNullValue(x.real->getType())};
  if (hlo::IsFloat(from)) {
    Value* result = FloatUnary(instruction, x.real);
    const ElementType type = instruction.element_type();
    const bool rounds = hlo::IsFloat(type) && !IsExact(instruction.opcode());
    return {rounds ? Round(result, type) : result};
  }
  return {IntegerUnary(instruction, x.real)};
}

Element ElementwiseEmitter::Binary(Opcode opcode, ElementType type, const Element& x,
                                   const Element& y) {
  if (hlo::IsComplex(type)) return ComplexBinary(opcode, x, y);
  if (hlo::IsFloat(type)) {
    Value* result = FloatBinary(opcode, x.real, y.real);
    return {IsExact(opcode) ? result : Round(result, type)};
  }
  return {IntegerBinary(opcode, type, x.real, y.real)};
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
  const Predicates predicates = PredicatesOf(direction);
  if (IsIntegral(type)) {
    const bool is_signed = hlo::IsSignedInteger(type);
    return {
        b_.CreateICmp(is_signed ? predicates.of_signed : predicates.of_unsigned, x.real, y.real)};
  }
  if (attributes.type == hlo::ComparisonType::kTotalOrder) {
    // The bits as signed integers, with the negative half reversed, are in total order.
    auto key = [&](Value* v) {
      const int bits = v->getType()->getScalarSizeInBits();
      Value* integer = b_.CreateBitCast(v, TypeLike(b_.getIntNTy(bits), v));
      Value* sign = b_.CreateAShr(integer, bits - 1);
      return b_.CreateXor(integer, b_.CreateLShr(sign, 1));
    };
    return {b_.CreateICmp(predicates.of_signed, key(x.real), key(y.real))};
  }
  return {b_.CreateFCmp(predicates.of_floats, x.real, y.real)};
}

}  // namespace cpu
