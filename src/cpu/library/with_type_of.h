// Code for elements of any type, by their width.
#pragma once

#include <cstdint>

namespace cpu {

// Calls run<T>() with a type of so many bytes: 1, 2, 4, 8 or 16.
void WithTypeOf(int64_t width, const auto& run) {
  struct SixteenBytes {
    uint64_t halves[2];
  };
  switch (width) {
    case 1:
      return run.template operator()<uint8_t>();
    case 2:
      return run.template operator()<uint16_t>();
    case 4:
      return run.template operator()<uint32_t>();
    case 8:
      return run.template operator()<uint64_t>();
    default:
      return run.template operator()<SixteenBytes>();
  }
}

}  // namespace cpu
