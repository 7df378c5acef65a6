// Element types as PJRT numbers them.
#pragma once

#include <string>

#include "hlo/element_type.h"
#include "hlo/error.h"
#include "pjrt/c_api.h"

namespace pjrt {

// clang-format off: one row a type.
#define PJRT_ELEMENT_TYPES(X) \
  X(PRED, kPred) \
  X(S2, kS2) \
  X(S4, kS4) \
  X(S8, kS8) \
  X(S16, kS16) \
  X(S32, kS32) \
  X(S64, kS64) \
  X(U2, kU2) \
  X(U4, kU4) \
  X(U8, kU8) \
  X(U16, kU16) \
  X(U32, kU32) \
  X(U64, kU64) \
  X(F4E2M1FN, kF4E2M1FN) \
  X(F6E2M3FN, kF6E2M3FN) \
  X(F6E3M2FN, kF6E3M2FN) \
  X(F8E3M4, kF8E3M4) \
  X(F8E4M3, kF8E4M3) \
  X(F8E4M3FN, kF8E4M3FN) \
  X(F8E4M3FNUZ, kF8E4M3FNUZ) \
  X(F8E4M3B11FNUZ, kF8E4M3B11FNUZ) \
  X(F8E5M2, kF8E5M2) \
  X(F8E5M2FNUZ, kF8E5M2FNUZ) \
  X(F8E8M0FNU, kF8E8M0FNU) \
  X(F16, kF16) \
  X(BF16, kBF16) \
  X(F32, kF32) \
  X(F64, kF64) \
  X(C64, kC64) \
  X(C128, kC128) \
  X(TOKEN, kToken)
// clang-format on

// Throws hlo::Error(kInvalidArgument) for types that PJRT has no number for (tuples).
inline PJRT_Buffer_Type ToBufferType(hlo::ElementType type) {
  switch (type) {
#define PJRT_CASE(theirs, ours) \
  case hlo::ElementType::ours:  \
    return PJRT_Buffer_Type_##theirs;
    PJRT_ELEMENT_TYPES(PJRT_CASE)
#undef PJRT_CASE
    default:
      throw hlo::Error("element type " + std::string(hlo::ShortName(type)) +
                       " has no counterpart in PJRT");
  }
}

// Throws hlo::Error: kInvalidArgument for a number that is no type, kUnimplemented for s1 and u1.
inline hlo::ElementType ToElementType(PJRT_Buffer_Type type) {
  switch (type) {
#define PJRT_CASE(theirs, ours)   \
  case PJRT_Buffer_Type_##theirs: \
    return hlo::ElementType::ours;
    PJRT_ELEMENT_TYPES(PJRT_CASE)
#undef PJRT_CASE
    case PJRT_Buffer_Type_S1:
    case PJRT_Buffer_Type_U1:
      throw hlo::Error(hlo::ErrorCode::kUnimplemented, "one-bit integers are not supported");
    default:
      throw hlo::Error("PJRT_Buffer_Type " + std::to_string(static_cast<int>(type)) +
                       " is not an element type");
  }
}

}  // namespace pjrt
