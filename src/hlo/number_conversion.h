// Conversion of one number between native element types, as StableHLO's convert does it (and
// XLA:CPU where the specification leaves it open): a float becomes an integer by truncation,
// saturating, NaN becoming 0; an integer wraps; anything becomes a pred by "not zero"; complex
// becomes real by its real part; floats round to nearest even (f16 and bf16 from f64 and wide
// integers by way of f32, as torch does).
#pragma once

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "hlo/float16.h"

namespace hlo {

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

// f16, bf16, float, double.
template <typename T>
inline constexpr bool kIsReal =
    std::is_floating_point_v<T> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// float or double: what arithmetic on a real type is done in.
template <typename T>
using ComputeType =
    std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>, float, T>;

template <typename Integer, typename Real>
Integer SaturatingCast(Real value) {
  if (std::isnan(value)) return 0;
  // Both bounds are exact powers of two (or zero) in any binary format.
  constexpr Real low = static_cast<Real>(std::numeric_limits<Integer>::min());
  const Real beyond = std::ldexp(Real{1}, std::numeric_limits<Integer>::digits);
  if (value < low) return std::numeric_limits<Integer>::min();
  if (value >= beyond) return std::numeric_limits<Integer>::max();
  return static_cast<Integer>(value);
}

template <typename To, typename From>
To ConvertNumber(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kIsComplex<From>) {
    if constexpr (kIsComplex<To>) {
      using Part = typename To::value_type;
      return To(static_cast<Part>(value.real()), static_cast<Part>(value.imag()));
    } else if constexpr (std::is_same_v<To, bool>) {
      return value != From(0);
    } else {
      return ConvertNumber<To>(value.real());
    }
  } else if constexpr (kIsComplex<To>) {
    return To(ConvertNumber<typename To::value_type>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return static_cast<ComputeType<From>>(value) != ComputeType<From>(0);
  } else if constexpr (kIsReal<From> && std::is_integral_v<To>) {
    return SaturatingCast<To>(static_cast<ComputeType<From>>(value));
  } else if constexpr (kIsReal<To> && !std::is_floating_point_v<To>) {
    return To(static_cast<float>(value));
  } else {
    return static_cast<To>(static_cast<ComputeType<From>>(value));
  }
}

}  // namespace hlo
