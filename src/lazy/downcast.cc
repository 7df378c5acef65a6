#include "lazy/downcast.h"

#include <cstdlib>
#include <string_view>

namespace lazy {
namespace {

using hlo::ElementType;

bool IsSet(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return false;
  std::string_view text = value;
  return !text.empty() && text != "0" && text != "false" && text != "False";
}

}  // namespace

Downcast Downcast::FromEnvironment() {
  Downcast downcast;
  downcast.uses_bf16_ = IsSet("XLA_USE_BF16");
  downcast.downcasts_ = IsSet("XLA_DOWNCAST_BF16");
  downcast.has_short_longs_ = IsSet("XLA_USE_32BIT_LONG");
  return downcast;
}

ElementType Downcast::Held(ElementType type) const {
  switch (type) {
    case ElementType::kF32:
      return uses_bf16_ || downcasts_ ? ElementType::kBF16 : type;
    case ElementType::kF64:
      if (uses_bf16_) return ElementType::kBF16;
      return downcasts_ ? ElementType::kF32 : type;
    case ElementType::kS64:
      return has_short_longs_ ? ElementType::kS32 : type;
    case ElementType::kU64:
      return has_short_longs_ ? ElementType::kU32 : type;
    default:
      return type;
  }
}

hlo::Value Downcast::Round(hlo::Builder& builder, hlo::Value value) const {
  if (value == nullptr || value->shape().is_tuple()) return value;
  const ElementType type = value->element_type(), held = Held(type);
  if (held == type) return value;
  if (!hlo::IsFloat(type)) return builder.Convert(builder.Convert(value, held), type);
  return builder.ReducePrecision(value, /*exponent_bits=*/8,
                                 /*mantissa_bits=*/held == ElementType::kBF16 ? 7 : 23);
}

}  // namespace lazy
