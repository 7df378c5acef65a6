#include "cpu/library/sort_key.h"

#include <algorithm>
#include <array>

#include "cpu/library/vector_clones.h"
#include "hlo/error.h"

namespace cpu {
namespace {

using hlo::ElementType;

#define SORT_KEY_INLINE [[gnu::always_inline]] inline

template <typename U>
struct IntegerKey {
  U flipped;  // the sign bit of signed numbers

  SORT_KEY_INLINE U operator()(U bits) const { return static_cast<U>(bits ^ flipped); }
};

template <typename U, int mantissa>
struct FloatKey {
  bool canonical;  // zeros are one, and so are NaNs

  SORT_KEY_INLINE U operator()(U bits) const {
    constexpr U kSign = static_cast<U>(U{1} << (sizeof(U) * 8 - 1));
    constexpr U kMagnitude = kSign - 1;
    constexpr U kExponent = kMagnitude >> mantissa << mantissa;
    constexpr U kNan = kExponent | static_cast<U>(U{1} << (mantissa - 1));
    const U magnitude = bits & kMagnitude;
    const U one_of_a_kind = magnitude == 0 ? U{0} : magnitude > kExponent ? kNan : bits;
    const U value = canonical ? one_of_a_kind : bits;
    return static_cast<U>((value & kSign) != 0 ? ~value : value | kSign);
  }
};

// Neighbours are read together, whichever way the lines run.
template <typename U, typename Key>
SORT_KEY_INLINE void MakeKeys(const SortLines& lines, bool descending, const Key& key,
                              uint64_t* keys) {
  const auto* elements = reinterpret_cast<const U*>(lines.start);
  const uint64_t flipped = descending ? ~uint64_t{0} : 0;
  const int64_t count = lines.count;
  if (lines.stride == 1) {
    for (int64_t i = 0; i < count; ++i) keys[i] = uint64_t{key(elements[i])} ^ flipped;
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const U* row = elements + i * lines.stride;
    for (int64_t l = 0; l < lines.lines; ++l) {
      keys[l * count + i] = uint64_t{key(row[l])} ^ flipped;
    }
  }
}

}  // namespace

bool HasSortKey(ElementType type) {
  constexpr std::array kOthers = {ElementType::kF16, ElementType::kBF16, ElementType::kF32,
                                  ElementType::kF64, ElementType::kPred};
  return std::ranges::find(kOthers, type) != kOthers.end() ||
         (hlo::IsInteger(type) && hlo::BitWidth(type) >= 8);
}

CPU_VECTOR_CLONES void MakeSortKeys(const SortOrder& order, const SortLines& lines,
                                    uint64_t* keys) {
  const bool descending = order.descending, canonical = order.zeros_and_nans_equal;
  switch (order.type) {
    case ElementType::kF16:
      return MakeKeys<uint16_t>(lines, descending, FloatKey<uint16_t, 10>{canonical}, keys);
    case ElementType::kBF16:
      return MakeKeys<uint16_t>(lines, descending, FloatKey<uint16_t, 7>{canonical}, keys);
    case ElementType::kF32:
      return MakeKeys<uint32_t>(lines, descending, FloatKey<uint32_t, 23>{canonical}, keys);
    case ElementType::kF64:
      return MakeKeys<uint64_t>(lines, descending, FloatKey<uint64_t, 52>{canonical}, keys);
    case ElementType::kPred:
    case ElementType::kU8:
      return MakeKeys<uint8_t>(lines, descending, IntegerKey<uint8_t>{0}, keys);
    case ElementType::kU16:
      return MakeKeys<uint16_t>(lines, descending, IntegerKey<uint16_t>{0}, keys);
    case ElementType::kU32:
      return MakeKeys<uint32_t>(lines, descending, IntegerKey<uint32_t>{0}, keys);
    case ElementType::kU64:
      return MakeKeys<uint64_t>(lines, descending, IntegerKey<uint64_t>{0}, keys);
    case ElementType::kS8:
      return MakeKeys<uint8_t>(lines, descending, IntegerKey<uint8_t>{0x80}, keys);
    case ElementType::kS16:
      return MakeKeys<uint16_t>(lines, descending, IntegerKey<uint16_t>{0x8000}, keys);
    case ElementType::kS32:
      return MakeKeys<uint32_t>(lines, descending, IntegerKey<uint32_t>{uint32_t{1} << 31}, keys);
    case ElementType::kS64:
      return MakeKeys<uint64_t>(lines, descending, IntegerKey<uint64_t>{uint64_t{1} << 63}, keys);
    default:
      throw hlo::Error(hlo::ErrorCode::kInternal, "a sort has no keys of this type");
  }
}

}  // namespace cpu
