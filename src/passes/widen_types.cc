#include "passes/passes.h"

#include <algorithm>
#include <concepts>
#include <limits>
#include <unordered_map>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/minifloat.h"

namespace passes {
namespace {

using hlo::Builder;
using hlo::Computation;
using hlo::ElementType;
using hlo::Instruction;
using hlo::MinifloatFormat;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;

// ---- Types.

bool IsNarrowInteger(ElementType type) { return hlo::IsInteger(type) && hlo::BitWidth(type) < 8; }

// f8E8M0FNU is the type of a scale: it has neither zero nor a sign.
const MinifloatFormat* NarrowFloat(ElementType type) {
  const MinifloatFormat* format = hlo::BitWidth(type) == 8 ? hlo::FindMinifloat(type) : nullptr;
  return format != nullptr && format->has_sign ? format : nullptr;
}

bool IsNarrow(ElementType type) { return IsNarrowInteger(type) || NarrowFloat(type) != nullptr; }

ElementType Wide(ElementType type) {
  if (NarrowFloat(type)) return ElementType::kF32;
  if (!IsNarrowInteger(type)) return type;
  return hlo::IsSignedInteger(type) ? ElementType::kS8 : ElementType::kU8;
}

Shape Wide(const Shape& shape) {
  if (shape.is_token()) return shape;
  if (!shape.is_tuple()) return shape.WithElementType(Wide(shape.element_type()));
  std::vector<Shape> elements;
  for (const Shape& element : shape.tuple_shapes()) elements.push_back(Wide(element));
  return Shape::Tuple(std::move(elements));
}

bool HasNarrow(const Shape& shape) {
  return shape.is_tuple() ? std::ranges::any_of(shape.tuple_shapes(), HasNarrow)
                          : IsNarrow(shape.element_type());
}

bool IsFactorization(Opcode opcode) {
  return opcode == Opcode::kTriangularSolve || opcode == Opcode::kCholesky;
}

bool Is16BitFloat(ElementType type) {
  return type == ElementType::kF16 || type == ElementType::kBF16;
}

bool IsToWiden(const Instruction& instruction) {
  return HasNarrow(instruction.shape()) ||
         (IsFactorization(instruction.opcode()) && Is16BitFloat(instruction.element_type()));
}

bool IsToWiden(const Computation& computation) {
  return std::ranges::any_of(computation.instructions(),
                             [](const auto& instruction) { return IsToWiden(*instruction); });
}

// ---- Arithmetic of one type, on values in the wide one.

// Integers of few bits.
class NarrowIntegers {
 public:
  NarrowIntegers(Builder& b, ElementType type)
      : b_(b), is_signed_(hlo::IsSignedInteger(type)), bits_(hlo::BitWidth(type)) {}

  Value LowBits(Value x) { return b_.And(x, Like(x, (1 << bits_) - 1)); }

  Value SignExtended(Value x) {
    const Value above = Like(x, 8 - bits_);
    return b_.Binary(Opcode::kShiftRightArithmetic, b_.Binary(Opcode::kShiftLeft, x, above), above);
  }

  Value Wrapped(Value x) { return is_signed_ ? SignExtended(x) : LowBits(x); }

  // `x` is of floating point numbers.
  Value Saturated(Value x) {
    const int64_t high = is_signed_ ? (1 << (bits_ - 1)) - 1 : (1 << bits_) - 1;
    const int64_t low = is_signed_ ? -high - 1 : 0;
    const ElementType type = x->element_type();
    return b_.Clamp(b_.ConstantScalar(type, low), x, b_.ConstantScalar(type, high));
  }

  // What looks at the bits above those that there are.
  Value BitOperation(Opcode opcode, std::vector<Value> operands) {
    switch (opcode) {
      case Opcode::kPopcnt:
        return b_.Unary(opcode, LowBits(operands[0]));
      case Opcode::kCountLeadingZeros:
        return b_.Subtract(b_.Unary(opcode, LowBits(operands[0])), Like(operands[0], 8 - bits_));
      case Opcode::kShiftRightLogical:
        return b_.Binary(opcode, LowBits(operands[0]), operands[1]);
      case Opcode::kShiftRightArithmetic:
        return b_.Binary(opcode, SignExtended(operands[0]), operands[1]);
      default:
        return nullptr;
    }
  }

 private:
  Value Like(Value x, int64_t number) { return b_.Full(x->shape(), number); }

  Builder& b_;
  const bool is_signed_;
  const int bits_;
};

// Floating point numbers of a byte.
class NarrowFloats {
 public:
  NarrowFloats(Builder& b, const MinifloatFormat& format) : b_(b), format_(format) {}

  // The nearest numbers of the format, in x's type.
  Value Rounded(Value x) {
    const bool is_double = x->element_type() == ElementType::kF64;
    const Value normal = b_.ReducePrecision(x, is_double ? 11 : 8, format_.mantissa_bits);
    const Value subnormal =
        b_.Multiply(b_.Unary(Opcode::kRoundNearestEven, b_.Multiply(x, Like(x, SubnormalScale()))),
                    Like(x, 1 / SubnormalScale()));
    Value rounded = b_.Select(IsSubnormal(x), subnormal, normal);
    const Value beyond = b_.Select(b_.Lt(x, Like(x, 0.0)), Like(x, -Beyond()), Like(x, Beyond()));
    rounded = b_.Select(b_.Gt(b_.Abs(rounded), Like(x, format_.largest())), beyond, rounded);
    return format_.has_negative_zero ? rounded : b_.Add(rounded, Like(x, 0.0));
  }

  // From the bits, as u8.
  Value Decoded(Value bits) {
    const Value code = b_.Convert(bits, ElementType::kU32);
    const Value magnitude = b_.And(code, Like(code, kMagnitudes - 1));
    const Value exponent = Like(code, int64_t{127 - format_.bias} << 23);
    Value value = b_.BitcastConvert(
        b_.Add(b_.Binary(Opcode::kShiftLeft, magnitude, Like(code, DroppedBits())), exponent),
        ElementType::kF32);
    const Value subnormal =
        b_.Multiply(b_.Convert(magnitude, ElementType::kF32), Like(value, 1 / SubnormalScale()));
    value = b_.Select(b_.Lt(magnitude, Like(code, FirstNormal())), subnormal, value);
    const Value special = b_.BitcastConvert(
        b_.Or(b_.Binary(Opcode::kShiftLeft, Payload(magnitude), Like(code, DroppedBits())),
              Like(code, format_.has_infinity ? kInfinityBits : kNanBits)),
        ElementType::kF32);
    value = b_.Select(b_.Ge(magnitude, Like(code, format_.codes)), special, value);
    value = b_.Select(b_.Ge(code, Like(code, kMagnitudes)), b_.Negate(value), value);
    if (format_.has_negative_zero) return value;
    return b_.Select(b_.Eq(code, Like(code, kMagnitudes)), Like(value, kNan), value);
  }

  // The bits of numbers of the format, as u8.
  Value Encoded(Value x) {
    const Value whole = b_.BitcastConvert(x, ElementType::kU32);
    const Value magnitude = b_.And(whole, Like(whole, 0x7fffffff));
    Value code =
        b_.Subtract(b_.Binary(Opcode::kShiftRightLogical, magnitude, Like(whole, DroppedBits())),
                    Like(whole, int64_t{127 - format_.bias} << format_.mantissa_bits));
    const Value subnormal =
        b_.Convert(b_.Multiply(b_.Abs(x), Like(x, SubnormalScale())), ElementType::kU32);
    code = b_.Select(IsSubnormal(x), subnormal, code);
    code = b_.Select(b_.Ge(magnitude, Like(whole, kInfinityBits)), Special(magnitude), code);
    const Value sign = b_.And(b_.Binary(Opcode::kShiftRightLogical, whole, Like(whole, 24)),
                              Like(whole, kMagnitudes));
    code = b_.Or(code, sign);
    return b_.Convert(code, ElementType::kU8);
  }

 private:
  static constexpr int64_t kMagnitudes = 0x80;
  static constexpr int64_t kInfinityBits = 0x7f800000, kNanBits = 0x7fc00000;  // of f32
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

  // The bits that tell what is no number from infinity, and from each other.
  Value Payload(Value bits) {
    return b_.And(bits, Like(bits, format_.has_infinity ? FirstNormal() - 1 : 0));
  }

  // The code of an f32, given by its bits, that is infinite or no number.
  Value Special(Value bits) {
    Value payload = Payload(b_.Binary(Opcode::kShiftRightLogical, bits, Like(bits, DroppedBits())));
    if (format_.has_infinity) {
      const Value is_lost =
          b_.And(b_.Gt(bits, Like(bits, kInfinityBits)), b_.Eq(payload, Like(bits, 0)));
      payload = b_.Select(is_lost, Like(bits, FirstNormal() / 2), payload);
    }
    return b_.Add(payload, Like(bits, format_.codes));
  }

  // Makes subnormal numbers whole.
  double SubnormalScale() const { return 1 / format_.ValueOf(1); }
  int64_t FirstNormal() const { return int64_t{1} << format_.mantissa_bits; }
  int64_t DroppedBits() const { return 23 - format_.mantissa_bits; }
  // What numbers beyond the largest become, but for their sign.
  double Beyond() const {
    return format_.has_infinity ? std::numeric_limits<double>::infinity() : kNan;
  }
  Value IsSubnormal(Value x) { return b_.Lt(b_.Abs(x), Like(x, format_.smallest_normal())); }
  Value Like(Value x, std::integral auto number) {
    return b_.Full(x->shape(), static_cast<int64_t>(number));
  }
  Value Like(Value x, double number) { return b_.Full(x->shape(), number); }

  Builder& b_;
  const MinifloatFormat& format_;
};

Value Rounded(Builder& b, Value x, ElementType type) {
  if (const MinifloatFormat* format = NarrowFloat(type)) return NarrowFloats(b, *format).Rounded(x);
  return IsNarrowInteger(type) ? NarrowIntegers(b, type).Wrapped(x) : x;
}

// A conversion to `to`; `x` and the result are in the wide types.
Value Converted(Builder& b, Value x, ElementType to) {
  if (NarrowFloat(to)) {
    const bool is_double = x->element_type() == ElementType::kF64;
    x = Rounded(b, is_double ? x : b.Convert(x, ElementType::kF32), to);
    return b.Convert(x, ElementType::kF32);
  }
  if (!IsNarrowInteger(to)) return b.Convert(x, to);
  NarrowIntegers integers(b, to);
  if (hlo::IsFloat(x->element_type())) return b.Convert(integers.Saturated(x), Wide(to));
  return integers.Wrapped(b.Convert(x, Wide(to)));
}

// Between a value of the program's type, as it lies in memory, and the wide one.
Value Opened(Builder& b, Value x) {
  const ElementType type = x->element_type();
  if (const MinifloatFormat* format = NarrowFloat(type)) {
    return NarrowFloats(b, *format).Decoded(b.BitcastConvert(x, ElementType::kU8));
  }
  return b.Convert(x, Wide(type));
}

Value Closed(Builder& b, Value x, ElementType type) {
  if (const MinifloatFormat* format = NarrowFloat(type)) {
    return b.BitcastConvert(NarrowFloats(b, *format).Encoded(x), type);
  }
  return b.Convert(x, type);
}

// ---- Programs.

[[noreturn]] void Refuse(const Instruction& instruction) {
  throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                   "the CPU engine does not implement " + instruction.ToString());
}

class Widener {
 public:
  explicit Widener(hlo::Module& module) : module_(module) {}

  Computation* Entry(const Computation& source) { return Run(source, nullptr, true); }

 private:
  using Values = std::unordered_map<const Instruction*, Value>;

  Computation* Run(const Computation& source, const Computation* before, bool is_entry) {
    Computation* computation = module_.AddComputation(source.name(), before);
    Builder b(computation);
    Values values;
    // By number: the source does not change, but the module's computations do.
    for (const auto& instruction : source.instructions()) {
      b.set_metadata(instruction->shared_metadata());
      values.emplace(instruction.get(), Widened(b, *instruction, values, is_entry));
    }
    std::vector<Value> results;
    for (const Instruction* result : source.results()) {
      const Value value = values.at(result);
      const ElementType type = result->element_type();
      results.push_back(is_entry && IsNarrow(type) ? Closed(b, value, type) : value);
    }
    computation->set_results(std::move(results));
    return computation;
  }

  Computation* Called(Computation& source, const Computation* caller) {
    const auto found = called_.find(&source);
    if (found != called_.end()) return found->second;
    return called_[&source] = Run(source, caller, false);
  }

  Value Widened(Builder& b, const Instruction& source, const Values& values, bool is_entry) {
    std::vector<Value> operands;
    for (const Instruction* operand : source.operands()) operands.push_back(values.at(operand));
    switch (source.opcode()) {
      case Opcode::kParameter:
        return Parameter(b, source, is_entry);
      case Opcode::kConstant:
        return Constant(b, source);
      case Opcode::kConvert:
        return Converted(b, operands[0], source.element_type());
      case Opcode::kBitcastConvert:
        return Bits(b, source, operands[0]);
      case Opcode::kDotGeneral:
      case Opcode::kConvolution:
        return Contraction(b, source, std::move(operands));
      case Opcode::kCholesky:
      case Opcode::kTriangularSolve:
        return Factors(b, source, std::move(operands));
      default:
        return Other(b, source, std::move(operands));
    }
  }

  static Value Parameter(Builder& b, const Instruction& source, bool is_entry) {
    if (is_entry && source.shape().is_tuple() && HasNarrow(source.shape())) Refuse(source);
    const Value parameter =
        b.computation()->Add(Opcode::kParameter, is_entry ? source.shape() : Wide(source.shape()),
                             {}, source.attributes());
    return is_entry && HasNarrow(source.shape()) ? Opened(b, parameter) : parameter;
  }

  // Folded when constants are.
  static Value Constant(Builder& b, const Instruction& source) {
    const Value constant = b.Constant(source.literal());
    return IsNarrow(source.element_type()) ? Opened(b, constant) : constant;
  }

  static Value Bits(Builder& b, const Instruction& source, Value x) {
    const ElementType from = source.operand(0)->element_type(), to = source.element_type();
    if (!IsNarrow(from) && !IsNarrow(to)) return b.BitcastConvert(x, to);
    if (hlo::BitWidth(from) != hlo::BitWidth(to)) Refuse(source);
    if (IsNarrowInteger(to)) return Converted(b, x, to);
    const MinifloatFormat *decoded = NarrowFloat(from), *encoded = NarrowFloat(to);
    Value code =
        decoded ? NarrowFloats(b, *decoded).Encoded(x) : b.BitcastConvert(x, ElementType::kU8);
    return encoded ? NarrowFloats(b, *encoded).Decoded(code) : b.BitcastConvert(code, to);
  }

  // Products of narrow floating point numbers are f32's, whatever the other operand is.
  static Value Contraction(Builder& b, const Instruction& source, std::vector<Value> operands) {
    const ElementType type = source.element_type();
    ElementType wide = Wide(type);
    const bool has_narrow_float = std::ranges::any_of(source.operands(), [](const auto* operand) {
      return NarrowFloat(operand->element_type()) != nullptr;
    });
    if (has_narrow_float && wide != ElementType::kF64) {
      wide = ElementType::kF32;
      for (Value& operand : operands) operand = b.Convert(operand, wide);
    }
    const Value product = b.Create(source.opcode(), std::move(operands), source.attributes(), {},
                                   Wide(source.shape()).WithElementType(wide));
    return IsNarrow(type) ? Rounded(b, product, type) : b.Convert(product, type);
  }

  static Value Factors(Builder& b, const Instruction& source, std::vector<Value> operands) {
    const ElementType type = source.element_type();
    if (Is16BitFloat(type)) {
      for (Value& operand : operands) operand = b.Convert(operand, ElementType::kF32);
    }
    return Converted(b, b.Create(source.opcode(), std::move(operands), source.attributes()), type);
  }

  Value Other(Builder& b, const Instruction& source, std::vector<Value> operands) {
    const bool is_narrow = HasNarrow(source.shape()) ||
                           std::ranges::any_of(source.operands(), [](const Instruction* operand) {
                             return HasNarrow(operand->shape());
                           });
    if (source.opcode() == Opcode::kCustomCall && is_narrow) Refuse(source);
    const ElementType type = source.element_type();
    if (IsNarrowInteger(type)) {
      const Value bits = NarrowIntegers(b, type).BitOperation(source.opcode(), operands);
      if (bits != nullptr) return Rounded(b, bits, type);
    }
    std::vector<Computation*> called;
    for (Computation* computation : source.called_computations()) {
      called.push_back(Called(*computation, b.computation()));
    }
    const Value value = b.Create(source.opcode(), std::move(operands), source.attributes(),
                                 std::move(called), Wide(source.shape()));
    if (is_narrow && source.opcode() == Opcode::kRngBitGenerator) {
      return RandomBits(b, source, value);
    }
    return Computes(source.opcode()) ? Rounded(b, value, type) : value;
  }

  // Of the bytes that are drawn, the low bits.
  static Value RandomBits(Builder& b, const Instruction& source, Value drawn) {
    const ElementType type = source.shape().tuple_shapes()[1].element_type();
    if (!IsNarrowInteger(type)) Refuse(source);
    return b.Tuple({b.GetTupleElement(drawn, 0), Rounded(b, b.GetTupleElement(drawn, 1), type)});
  }

  // Others give values that are there, or call computations that round.
  static bool Computes(Opcode opcode) {
    return hlo::IsElementwiseUnary(opcode) || hlo::IsElementwiseBinary(opcode) ||
           opcode == Opcode::kReducePrecision || opcode == Opcode::kIota;
  }

  hlo::Module& module_;
  std::unordered_map<const Computation*, Computation*> called_;
};

}  // namespace

bool WidenTypes(hlo::Module& module) {
  if (std::ranges::none_of(module.computations(),
                           [](const auto& computation) { return IsToWiden(*computation); })) {
    return false;
  }
  module.set_entry(Widener(module).Entry(*module.entry()));
  module.entry()->RemoveDeadInstructions();
  module.RemoveUnreachableComputations();
  module.SortComputations();
  return true;
}

}  // namespace passes
