#include "hlo/element_type.h"

#include <array>
#include <string>

#include "hlo/error.h"

namespace hlo {
namespace {

struct TypeInfo {
  std::string_view name;
  std::string_view short_name;
  uint8_t bits;
  uint8_t bytes;
};

// Indexed by ElementType.
constexpr std::array<TypeInfo, 33> kTypes = {{
    {"invalid", "invalid", 0, 0},
    {"i1", "pred", 1, 1},
    {"i2", "s2", 2, 1},
    {"i4", "s4", 4, 1},
    {"i8", "s8", 8, 1},
    {"i16", "s16", 16, 2},
    {"i32", "s32", 32, 4},
    {"i64", "s64", 64, 8},
    {"ui2", "u2", 2, 1},
    {"ui4", "u4", 4, 1},
    {"ui8", "u8", 8, 1},
    {"ui16", "u16", 16, 2},
    {"ui32", "u32", 32, 4},
    {"ui64", "u64", 64, 8},
    {"f4E2M1FN", "f4e2m1fn", 4, 1},
    {"f6E2M3FN", "f6e2m3fn", 6, 1},
    {"f6E3M2FN", "f6e3m2fn", 6, 1},
    {"f8E3M4", "f8e3m4", 8, 1},
    {"f8E4M3", "f8e4m3", 8, 1},
    {"f8E4M3FN", "f8e4m3fn", 8, 1},
    {"f8E4M3FNUZ", "f8e4m3fnuz", 8, 1},
    {"f8E4M3B11FNUZ", "f8e4m3b11fnuz", 8, 1},
    {"f8E5M2", "f8e5m2", 8, 1},
    {"f8E5M2FNUZ", "f8e5m2fnuz", 8, 1},
    {"f8E8M0FNU", "f8e8m0fnu", 8, 1},
    {"f16", "f16", 16, 2},
    {"bf16", "bf16", 16, 2},
    {"f32", "f32", 32, 4},
    {"f64", "f64", 64, 8},
    {"complex<f32>", "c64", 64, 8},
    {"complex<f64>", "c128", 128, 16},
    {"!stablehlo.token", "token", 0, 0},
    {"tuple", "tuple", 0, 0},
}};
static_assert(static_cast<size_t>(ElementType::kTuple) + 1 == kTypes.size());

const TypeInfo& Info(ElementType type) { return kTypes.at(static_cast<size_t>(type)); }

}  // namespace

size_t ByteWidth(ElementType type) { return Info(type).bytes; }
int BitWidth(ElementType type) { return Info(type).bits; }
std::string_view Name(ElementType type) { return Info(type).name; }
std::string_view ShortName(ElementType type) { return Info(type).short_name; }

bool IsSignedInteger(ElementType type) {
  return type >= ElementType::kS2 && type <= ElementType::kS64;
}

bool IsUnsignedInteger(ElementType type) {
  return type >= ElementType::kU2 && type <= ElementType::kU64;
}

bool IsFloat(ElementType type) {
  return type >= ElementType::kF4E2M1FN && type <= ElementType::kF64;
}

ElementType RealType(ElementType type) {
  if (type == ElementType::kC64) return ElementType::kF32;
  if (type == ElementType::kC128) return ElementType::kF64;
  return type;
}

ElementType ComplexType(ElementType type) {
  if (type == ElementType::kF32) return ElementType::kC64;
  if (type == ElementType::kF64) return ElementType::kC128;
  throw Error("no complex type has parts of type " + std::string(ShortName(type)) +
              "; only f32 and f64 have one");
}

void ThrowNotNative(ElementType type) {
  throw Error(ErrorCode::kUnimplemented, "element type " + std::string(ShortName(type)) +
                                             " has no arithmetic here; convert it to one of pred, "
                                             "s8-s64, u8-u64, f16, bf16, f32, f64, c64, c128");
}

}  // namespace hlo
