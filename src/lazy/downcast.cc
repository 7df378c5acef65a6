#include "lazy/downcast.h"

#include <cstdlib>
#include <string_view>

namespace lazy {
namespace {

bool IsSet(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return false;
  std::string_view text = value;
  return !text.empty() && text != "0" && text != "false" && text != "False";
}

}  // namespace

Downcast Downcast::FromEnvironment() {
  Downcast downcast;
  downcast.doubles_ = IsSet("XLA_DOWNCAST_BF16");
  downcast.floats_ = downcast.doubles_ || IsSet("XLA_USE_BF16");
  return downcast;
}

hlo::Value Downcast::Round(hlo::Builder& builder, hlo::Value value) const {
  if (value == nullptr || value->shape().is_tuple()) return value;
  if (floats_ && value->element_type() == hlo::ElementType::kF32) {
    return builder.ReducePrecision(value, /*exponent_bits=*/8, /*mantissa_bits=*/7);
  }
  if (doubles_ && value->element_type() == hlo::ElementType::kF64) {
    return builder.ReducePrecision(value, /*exponent_bits=*/8, /*mantissa_bits=*/23);
  }
  return value;
}

}  // namespace lazy
