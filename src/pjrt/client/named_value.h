// Named values: what plugins are configured with and what they say of themselves.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "pjrt/c_api.h"

namespace pjrt {

using NamedValue = std::variant<std::string, int64_t, std::vector<int64_t>, float, bool>;
using NamedValues = std::map<std::string, NamedValue>;

NamedValues FromC(const PJRT_NamedValue* values, size_t count);
// The result points into `values`.
std::vector<PJRT_NamedValue> ToC(const NamedValues& values);
// For people: "[1, 8, 0]", "cpu", "true".
std::string ToString(const NamedValue& value);

}  // namespace pjrt
