// Reading a Constant, the attribute that carries a Python number.
#pragma once

#include <complex>
#include <type_traits>
#include <variant>

#include "aten/op_arguments.h"
#include "hlo/error.h"

namespace torch_xla {

// The number as a double; a complex one is an error.
inline double NumberOf(const Constant& value) {
  return std::visit(
      [](auto number) -> double {
        if constexpr (std::is_same_v<decltype(number), std::complex<double>>) {
          throw hlo::Error("the argument must be a real number, not a complex one");
        } else {
          return static_cast<double>(number);
        }
      },
      value);
}

inline bool IsNumber(const Constant& value, double number) {
  if (const auto* complex = std::get_if<std::complex<double>>(&value)) return *complex == number;
  return NumberOf(value) == number;
}

}  // namespace torch_xla
