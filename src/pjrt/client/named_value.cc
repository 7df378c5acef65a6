#include "pjrt/client/named_value.h"

#include "hlo/shape.h"

namespace pjrt {

NamedValues FromC(const PJRT_NamedValue* values, size_t count) {
  NamedValues result;
  for (size_t i = 0; i < count; ++i) {
    const PJRT_NamedValue& value = values[i];
    std::string name(value.name, value.name_size);
    switch (value.type) {
      case PJRT_NamedValue_kString:
        result[name] = std::string(value.string_value, value.value_size);
        break;
      case PJRT_NamedValue_kInt64:
        result[name] = value.int64_value;
        break;
      case PJRT_NamedValue_kInt64List:
        result[name] = std::vector<int64_t>(value.int64_array_value,
                                            value.int64_array_value + value.value_size);
        break;
      case PJRT_NamedValue_kFloat:
        result[name] = value.float_value;
        break;
      case PJRT_NamedValue_kBool:
        result[name] = value.bool_value;
        break;
    }
  }
  return result;
}

std::vector<PJRT_NamedValue> ToC(const NamedValues& values) {
  std::vector<PJRT_NamedValue> result;
  for (const auto& [name, value] : values) {
    PJRT_NamedValue& c = result.emplace_back();
    c.struct_size = PJRT_STRUCT_SIZE(PJRT_NamedValue, value_size);
    c.name = name.data();
    c.name_size = name.size();
    c.value_size = 1;
    if (const auto* text = std::get_if<std::string>(&value)) {
      c.type = PJRT_NamedValue_kString;
      c.string_value = text->data();
      c.value_size = text->size();
    } else if (const auto* number = std::get_if<int64_t>(&value)) {
      c.type = PJRT_NamedValue_kInt64;
      c.int64_value = *number;
    } else if (const auto* numbers = std::get_if<std::vector<int64_t>>(&value)) {
      c.type = PJRT_NamedValue_kInt64List;
      c.int64_array_value = numbers->data();
      c.value_size = numbers->size();
    } else if (const auto* real = std::get_if<float>(&value)) {
      c.type = PJRT_NamedValue_kFloat;
      c.float_value = *real;
    } else {
      c.type = PJRT_NamedValue_kBool;
      c.bool_value = std::get<bool>(value);
    }
  }
  return result;
}

std::string ToString(const NamedValue& value) {
  struct Visitor {
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(int64_t number) const { return std::to_string(number); }
    std::string operator()(const std::vector<int64_t>& numbers) const {
      return hlo::ToString(numbers);
    }
    std::string operator()(float number) const { return std::to_string(number); }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
  };
  return std::visit(Visitor(), value);
}

}  // namespace pjrt
