// Element types of tensors: StableHLO's, with their sizes, names and C++ counterparts.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hlo/float16.h"

namespace hlo {

// The order is part of nothing: PJRT, VHLO and torch numbers are mapped where those formats live.
enum class ElementType : uint8_t {
  kInvalid,
  kPred,
  kS2,
  kS4,
  kS8,
  kS16,
  kS32,
  kS64,
  kU2,
  kU4,
  kU8,
  kU16,
  kU32,
  kU64,
  kF4E2M1FN,
  kF6E2M3FN,
  kF6E3M2FN,
  kF8E3M4,
  kF8E4M3,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E4M3B11FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0FNU,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kToken,  // no data; orders side effects
  kTuple,  // the results of an instruction with several of them
};

// Bytes that one element occupies in a Literal or buffer. Sub-byte types occupy a whole byte; token
// and tuple occupy none.
size_t ByteWidth(ElementType type);
// Significant bits: 1 for pred, 4 for s4, 64 for c64.
int BitWidth(ElementType type);
// StableHLO's spelling: "i1", "i32", "ui8", "bf16", "complex<f32>", "!stablehlo.token".
std::string_view Name(ElementType type);
// HLO's spelling, used in messages: "pred", "s32", "u8", "bf16", "c64".
std::string_view ShortName(ElementType type);

bool IsSignedInteger(ElementType type);
bool IsUnsignedInteger(ElementType type);  // pred is not an integer
inline bool IsInteger(ElementType type) { return IsSignedInteger(type) || IsUnsignedInteger(type); }
bool IsFloat(ElementType type);  // real floating point
inline bool IsComplex(ElementType type) {
  return type == ElementType::kC64 || type == ElementType::kC128;
}
// f32 for c64, f64 for c128, the type itself otherwise.
ElementType RealType(ElementType type);
// c64 for f32, c128 for f64; throws Error for others.
ElementType ComplexType(ElementType type);

template <typename T>
struct ElementTypeOfImpl;
#define HLO_NATIVE_TYPES(X)    \
  X(bool, kPred)               \
  X(int8_t, kS8)               \
  X(int16_t, kS16)             \
  X(int32_t, kS32)             \
  X(int64_t, kS64)             \
  X(uint8_t, kU8)              \
  X(uint16_t, kU16)            \
  X(uint32_t, kU32)            \
  X(uint64_t, kU64)            \
  X(::hlo::Float16, kF16)      \
  X(::hlo::BFloat16, kBF16)    \
  X(float, kF32)               \
  X(double, kF64)              \
  X(std::complex<float>, kC64) \
  X(std::complex<double>, kC128)
#define HLO_ELEMENT_TYPE_OF(cpp, tag)                      \
  template <>                                              \
  struct ElementTypeOfImpl<cpp> {                          \
    static constexpr ElementType value = ElementType::tag; \
  };
HLO_NATIVE_TYPES(HLO_ELEMENT_TYPE_OF)
#undef HLO_ELEMENT_TYPE_OF

// Whether a C++ type stores it: those of HLO_NATIVE_TYPES.
constexpr bool IsNative(ElementType type) {
  switch (type) {
#define HLO_NATIVE_CASE(cpp, tag) case ElementType::tag:
    HLO_NATIVE_TYPES(HLO_NATIVE_CASE)
#undef HLO_NATIVE_CASE
    return true;
    default:
      return false;
  }
}

// The element type that stores a C++ type.
template <typename T>
inline constexpr ElementType kElementTypeOf = ElementTypeOfImpl<T>::value;

// Calls `f.template operator()<T>()` with the C++ type of a native element type (those of
// HLO_NATIVE_TYPES); throws Error for the others.
[[noreturn]] void ThrowNotNative(ElementType type);
template <typename F>
decltype(auto) DispatchNative(ElementType type, F&& f) {
  switch (type) {
#define HLO_DISPATCH_CASE(cpp, tag) \
  case ElementType::tag:            \
    return f.template operator()<cpp>();
    HLO_NATIVE_TYPES(HLO_DISPATCH_CASE)
#undef HLO_DISPATCH_CASE
    default:
      ThrowNotNative(type);
  }
}

}  // namespace hlo
