// Reading options and writing attributes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "hlo/error.h"
#include "pjrt/c_api.h"

namespace pjrt::boundary {

inline std::string_view NameOf(const PJRT_NamedValue& value) {
  return {value.name, value.name_size};
}

// Throw hlo::Error naming the option when it has another type.
inline int64_t Int64Of(const PJRT_NamedValue& value) {
  if (value.type == PJRT_NamedValue_kInt64) return value.int64_value;
  throw hlo::Error("option '" + std::string(NameOf(value)) + "' must be an int64");
}
inline std::string_view TextOf(const PJRT_NamedValue& value) {
  if (value.type == PJRT_NamedValue_kString) return {value.string_value, value.value_size};
  throw hlo::Error("option '" + std::string(NameOf(value)) + "' must be a string");
}
inline bool BoolOf(const PJRT_NamedValue& value) {
  if (value.type == PJRT_NamedValue_kBool) return value.bool_value;
  throw hlo::Error("option '" + std::string(NameOf(value)) + "' must be a bool");
}

// What these make points at its arguments, which must live on.
inline PJRT_NamedValue NewNamedValue(std::string_view name, PJRT_NamedValue_Type type,
                                     size_t size) {
  PJRT_NamedValue value{};
  value.struct_size = PJRT_STRUCT_SIZE(PJRT_NamedValue, value_size);
  value.name = name.data();
  value.name_size = name.size();
  value.type = type;
  value.value_size = size;
  return value;
}
inline PJRT_NamedValue Attribute(std::string_view name, std::string_view text) {
  PJRT_NamedValue value = NewNamedValue(name, PJRT_NamedValue_kString, text.size());
  value.string_value = text.data();
  return value;
}
inline PJRT_NamedValue Attribute(std::string_view name, int64_t number) {
  PJRT_NamedValue value = NewNamedValue(name, PJRT_NamedValue_kInt64, 1);
  value.int64_value = number;
  return value;
}
inline PJRT_NamedValue Attribute(std::string_view name, std::span<const int64_t> numbers) {
  PJRT_NamedValue value = NewNamedValue(name, PJRT_NamedValue_kInt64List, numbers.size());
  value.int64_array_value = numbers.data();
  return value;
}

}  // namespace pjrt::boundary
