// Bytes as the trace that a plugin returns (XSpace): what is read stays the same when it is written
// and read again.
#include <cstdint>
#include <string_view>

#include "hlo/error.h"
#include "pjrt/wire/xspace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pjrt::XSpace space;
  try {
    space = pjrt::ParseXSpace({reinterpret_cast<const char*>(data), size});
  } catch (const hlo::Error&) {
    return 0;
  }
  const pjrt::XSpace again = pjrt::ParseXSpace(pjrt::Serialize(space));
  // The names of stats are kept in no order.
  if (again.planes.size() != space.planes.size() || again.errors != space.errors) __builtin_trap();
  for (size_t i = 0; i < space.planes.size(); ++i) {
    const pjrt::XPlane &x = space.planes[i], &y = again.planes[i];
    if (x.stat_names != y.stat_names || x.lines.size() != y.lines.size() ||
        x.event_metadata.size() != y.event_metadata.size() || x.stats.size() != y.stats.size()) {
      __builtin_trap();
    }
    for (size_t j = 0; j < x.stats.size(); ++j) {
      const pjrt::XValue &a = x.stats[j].value, &b = y.stats[j].value;
      const auto* number = std::get_if<double>(&a);
      if (number != nullptr && *number != *number) continue;
      if (a != b) __builtin_trap();
    }
  }
  return 0;
}
