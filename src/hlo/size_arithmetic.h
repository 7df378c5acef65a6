// Integer arithmetic on sizes: rounding up, and the number of elements that dimensions span. Sizes
// are not negative, and the results must fit.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace hlo {

// How many pieces of `size` hold `count`.
template <std::integral T>
constexpr T CeilDivide(T count, std::type_identity_t<T> size) {
  return (count + size - 1) / size;
}

// The smallest multiple of `unit` that is not below `count`.
template <std::integral T>
constexpr T RoundUp(T count, std::type_identity_t<T> unit) {
  return CeilDivide(count, unit) * unit;
}

// 1 for none.
constexpr int64_t Product(std::span<const int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes) product *= size;
  return product;
}
// Of the sizes from `begin` to `end`, that one excluded.
constexpr int64_t Product(std::span<const int64_t> sizes, size_t begin, size_t end) {
  return Product(sizes.subspan(begin, end - begin));
}
// Of the sizes at the given places.
constexpr int64_t ProductOf(std::span<const int64_t> sizes, std::span<const int64_t> places) {
  int64_t product = 1;
  for (int64_t place : places) product *= sizes[place];
  return product;
}

}  // namespace hlo
