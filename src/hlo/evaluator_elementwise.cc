// Element-wise operations: a kernel for one element, found by opcode and types, and the loop over
// all.
#include <cmath>
#include <cstring>

#include "hlo/evaluation.h"
#include "hlo/scalar_arithmetic.h"

namespace hlo::evaluation {
namespace {

template <typename T>
T Load(const std::byte* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

template <typename T>
void Store(std::byte* address, T value) {
  std::memcpy(address, &value, sizeof(T));
}

template <typename T>
using Wide = std::conditional_t<kIsComplex<T>, std::complex<double>,
                                std::conditional_t<kIsReal<T>, double, T>>;

template <typename T>
Wide<T> LoadWide(const std::byte* address) {
  return ConvertNumber<Wide<T>>(Load<T>(address));
}

template <typename T>
void UnaryKernel(const Instruction& instruction, const std::byte* const* in, std::byte* out) {
  Wide<T> x = LoadWide<T>(in[0]);
  Opcode opcode = instruction.opcode();
  if constexpr (kIsComplex<T>) {
    Store(out, ConvertNumber<T>(ComplexUnary(opcode, x)));
  } else if constexpr (kIsReal<T>) {
    Store(out, ConvertNumber<T>(RealUnary(opcode, x)));
  } else {
    Store(out, IntegerUnary<T>(opcode, x));
  }
}

template <typename T>
void BinaryKernel(const Instruction& instruction, const std::byte* const* in, std::byte* out) {
  Wide<T> x = LoadWide<T>(in[0]), y = LoadWide<T>(in[1]);
  Opcode opcode = instruction.opcode();
  if constexpr (kIsComplex<T>) {
    Store(out, ConvertNumber<T>(ComplexBinary(opcode, x, y)));
  } else if constexpr (kIsReal<T>) {
    Store(out, ConvertNumber<T>(RealBinary(opcode, x, y)));
  } else {
    Store(out, IntegerBinary<T>(opcode, x, y));
  }
}

// abs, real and imag of complex numbers (and real and imag of real ones).
template <typename T>
void PartKernel(const Instruction& instruction, const std::byte* const* in, std::byte* out) {
  T x = Load<T>(in[0]);
  if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    switch (instruction.opcode()) {
      case Opcode::kReal:
        return Store<Part>(out, x.real());
      case Opcode::kImag:
        return Store<Part>(out, x.imag());
      default:
        return Store<Part>(out, static_cast<Part>(std::hypot(static_cast<double>(x.real()),
                                                             static_cast<double>(x.imag()))));
    }
  } else {
    Store<T>(out, instruction.opcode() == Opcode::kReal ? x : ConvertNumber<T>(0));
  }
}

template <typename T>
void IsFiniteKernel(const Instruction&, const std::byte* const* in, std::byte* out) {
  Store<bool>(out, std::isfinite(ConvertNumber<double>(Load<T>(in[0]))));
}

template <typename T>
void ComplexKernel(const Instruction&, const std::byte* const* in, std::byte* out) {
  Store(out, Load<T>(in[0]));
  Store(out + sizeof(T), Load<T>(in[1]));
}

template <typename T>
bool Holds(ComparisonDirection direction, T x, T y) {
  switch (direction) {
    case ComparisonDirection::kEq:
      return x == y;
    case ComparisonDirection::kNe:
      return x != y;
    default:
      break;
  }
  if constexpr (!kIsComplex<T>) {
    switch (direction) {
      case ComparisonDirection::kGe:
        return x >= y;
      case ComparisonDirection::kGt:
        return x > y;
      case ComparisonDirection::kLe:
        return x <= y;
      case ComparisonDirection::kLt:
        return x < y;
      default:
        break;
    }
  }
  return false;
}

template <typename T>
void CompareKernel(const Instruction& instruction, const std::byte* const* in, std::byte* out) {
  auto direction = instruction.as<CompareAttributes>().direction;
  Store<bool>(out, Holds(direction, LoadWide<T>(in[0]), LoadWide<T>(in[1])));
}

// An integer that orders like the total order of floats: sign and magnitude as two's complement.
template <typename Bits>
int64_t TotalOrderKey(const std::byte* address) {
  using Signed = std::make_signed_t<Bits>;
  auto bits = static_cast<Signed>(Load<Bits>(address));
  return bits < 0 ? bits ^ std::numeric_limits<Signed>::max() : bits;
}

template <typename T>
void TotalOrderKernel(const Instruction& instruction, const std::byte* const* in, std::byte* out) {
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  auto direction = instruction.as<CompareAttributes>().direction;
  Store<bool>(out, Holds(direction, TotalOrderKey<Bits>(in[0]), TotalOrderKey<Bits>(in[1])));
}

void SelectKernel(const Instruction& instruction, const std::byte* const* in, std::byte* out) {
  std::memcpy(out, Load<bool>(in[0]) ? in[1] : in[2], ByteWidth(instruction.element_type()));
}

template <typename T>
void ClampKernel(const Instruction&, const std::byte* const* in, std::byte* out) {
  Wide<T> low = LoadWide<T>(in[0]), x = LoadWide<T>(in[1]), high = LoadWide<T>(in[2]);
  if constexpr (kIsComplex<T>) {
    x = ComplexBinary(Opcode::kMinimum, ComplexBinary(Opcode::kMaximum, low, x), high);
  } else if constexpr (kIsReal<T>) {
    x = RealBinary(Opcode::kMinimum, RealBinary(Opcode::kMaximum, low, x), high);
  } else {
    x = IntegerBinary<T>(Opcode::kMinimum, IntegerBinary<T>(Opcode::kMaximum, low, x), high);
  }
  Store(out, ConvertNumber<T>(x));
}

template <typename T>
void ReducePrecisionKernel(const Instruction& instruction, const std::byte* const* in,
                           std::byte* out) {
  const auto& precision = instruction.as<ReducePrecisionAttributes>();
  double x = ConvertNumber<double>(Load<T>(in[0]));
  Store(out,
        ConvertNumber<T>(ReducePrecision(x, precision.exponent_bits, precision.mantissa_bits)));
}

template <typename From, typename To>
void ConvertKernel(const Instruction&, const std::byte* const* in, std::byte* out) {
  Store(out, ConvertNumber<To>(Load<From>(in[0])));
}

template <typename T>
ScalarKernel FindConvert(ElementType to) {
  return DispatchNative(to, []<typename To>() -> ScalarKernel { return &ConvertKernel<T, To>; });
}

template <typename T>
ScalarKernel FindFor(const Instruction& instruction) {
  Opcode opcode = instruction.opcode();
  switch (opcode) {
    case Opcode::kReal:
    case Opcode::kImag:
      return &PartKernel<T>;
    case Opcode::kAbs:
      if constexpr (kIsComplex<T>) return &PartKernel<T>;
      break;
    case Opcode::kIsFinite:
      return &IsFiniteKernel<T>;
    case Opcode::kComplex:
      return &ComplexKernel<T>;
    case Opcode::kCompare:
      if constexpr (kIsReal<T>) {
        bool total = instruction.as<CompareAttributes>().type == ComparisonType::kTotalOrder;
        if (total) return &TotalOrderKernel<T>;
      }
      return &CompareKernel<T>;
    case Opcode::kClamp:
      return &ClampKernel<T>;
    case Opcode::kReducePrecision:
      return &ReducePrecisionKernel<T>;
    case Opcode::kConvert:
      return FindConvert<T>(instruction.element_type());
    default:
      break;
  }
  if (IsElementwiseUnary(opcode)) return &UnaryKernel<T>;
  return IsElementwiseBinary(opcode) ? &BinaryKernel<T> : nullptr;
}

}  // namespace

ScalarKernel FindScalarKernel(const Instruction& instruction) {
  if (!IsElementwise(instruction.opcode()) || ComputesNarrow(instruction)) return nullptr;
  if (instruction.opcode() == Opcode::kSelect) return &SelectKernel;
  return DispatchNative(instruction.operand(0)->element_type(),
                        [&]<typename T>() { return FindFor<T>(instruction); });
}

Leaves EvaluateElementwise(const Instruction& instruction, const Leaves& operands) {
  ScalarKernel kernel = FindScalarKernel(instruction);
  Literal result(instruction.shape());
  int64_t count = result.shape().num_elements();
  std::vector<const std::byte*> in;
  std::vector<size_t> steps;
  for (const Literal& operand : operands) {
    in.push_back(operand.bytes());
    bool broadcast = operand.shape().is_scalar() && !result.shape().is_scalar();
    steps.push_back(broadcast ? 0 : ByteWidth(operand.shape().element_type()));
  }
  std::byte* out = result.mutable_bytes();
  size_t width = ByteWidth(result.shape().element_type());
  for (int64_t i = 0; i < count; ++i, out += width) {
    kernel(instruction, in.data(), out);
    for (size_t k = 0; k < in.size(); ++k) in[k] += steps[k];
  }
  return {std::move(result)};
}

}  // namespace hlo::evaluation
