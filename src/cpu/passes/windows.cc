#include "cpu/passes/windows.h"

#include <algorithm>

namespace cpu {
namespace {

int64_t EntryOf(const hlo::Dimensions& list, size_t d, int64_t otherwise) {
  return list.empty() ? otherwise : list[d];
}

// Whether a window along this dimension is the element that it gives.
bool IsTrivial(const hlo::Window& window, size_t d) {
  return window.dimensions[d] == 1 && EntryOf(window.strides, d, 1) == 1 &&
         EntryOf(window.padding_low, d, 0) == 0 && EntryOf(window.padding_high, d, 0) == 0 &&
         EntryOf(window.base_dilations, d, 1) == 1;
}

hlo::Window Along(const hlo::Window& window, size_t d) {
  hlo::Window one = hlo::Window::Trivial(static_cast<int64_t>(window.dimensions.size()));
  one.dimensions[d] = window.dimensions[d];
  one.strides[d] = EntryOf(window.strides, d, 1);
  one.padding_low[d] = EntryOf(window.padding_low, d, 0);
  one.padding_high[d] = EntryOf(window.padding_high, d, 0);
  one.base_dilations[d] = EntryOf(window.base_dilations, d, 1);
  one.window_dilations[d] = EntryOf(window.window_dilations, d, 1);
  return one;
}

}  // namespace

std::vector<hlo::Window> OneByOne(const hlo::Window& window) {
  std::vector<hlo::Window> all;
  bool spreads = false;
  for (size_t d = 0; d < window.dimensions.size(); ++d) {
    if (IsTrivial(window, d)) continue;
    all.push_back(Along(window, d));
    spreads |= EntryOf(window.base_dilations, d, 1) > 1;
  }
  // Where there are more results than elements the first ones are of what lies apart.
  if (spreads) std::ranges::reverse(all);
  return all;
}

}  // namespace cpu
