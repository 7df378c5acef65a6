// What the tests of the library calls share: random literals, running a bound instruction,
// comparing with tolerance, and contractions as naive loops (naive_contractions.cc).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "cpu/library_call.h"
#include "cpu/memory.h"
#include "cpu/thread_pool.h"
#include "hlo/builder.h"
#include "hlo/literal.h"

namespace cpu::testing {

using hlo::ElementType;
using hlo::Literal;
using hlo::Shape;
using Number = std::complex<double>;

// Small numbers, different for each seed; integers in [-8, 8].
inline Literal RandomLiteral(const Shape& shape, uint32_t seed) {
  Literal literal(shape);
  uint32_t state = seed * 2654435761u + 12345;
  auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return static_cast<double>(state >> 8) / (1 << 24) * 2 - 1;
  };
  hlo::DispatchNative(shape.element_type(), [&]<typename T>() {
    for (T& x : literal.mutable_data<T>()) {
      if constexpr (std::is_same_v<T, bool>) {
        x = next() > 0;
      } else if constexpr (std::is_integral_v<T>) {
        // Narrow unsigned types wrap around; wide ones stay exact in the naive loops' doubles.
        double value = next() * 8;
        x = static_cast<T>(
            static_cast<int64_t>(std::is_unsigned_v<T> && sizeof(T) > 2 ? std::abs(value) : value));
      } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                           std::is_same_v<T, std::complex<double>>) {
        auto real = static_cast<typename T::value_type>(next());
        x = T(real, static_cast<typename T::value_type>(next()));
      } else {
        x = T(static_cast<float>(next()));
      }
    }
  });
  return literal;
}

inline std::vector<Number> Numbers(const Literal& literal) {
  std::vector<Number> numbers;
  hlo::DispatchNative(literal.shape().element_type(), [&]<typename T>() {
    for (T x : literal.data<T>()) {
      if constexpr (std::is_same_v<T, hlo::Float16> || std::is_same_v<T, hlo::BFloat16>) {
        numbers.emplace_back(static_cast<float>(x));
      } else if constexpr (std::is_arithmetic_v<T>) {
        numbers.emplace_back(static_cast<double>(x));
      } else {
        numbers.emplace_back(x.real(), x.imag());
      }
    }
  });
  return numbers;
}

// Binds and runs; empty if nothing binds.
inline std::vector<Literal> RunLibraryCall(const hlo::Instruction& instruction,
                                           const std::vector<Literal>& operands,
                                           std::string* description = nullptr) {
  auto call = BindLibraryCall(instruction);
  if (call == nullptr) return {};
  if (description != nullptr) *description = call->Description();
  RunOptions options;
  Block scratch(call->scratch_bytes());
  std::memset(scratch.data(), 0xcd, call->scratch_bytes());
  CallContext context{ThreadPool::Default(), options, scratch.data()};
  std::vector<Shape> shapes = instruction.shape().is_tuple()
                                  ? instruction.shape().tuple_shapes()
                                  : std::vector<Shape>{instruction.shape()};
  std::vector<const void*> inputs;
  for (const Literal& operand : operands) inputs.push_back(operand.bytes());
  std::vector<Literal> results;
  std::vector<void*> outputs;
  for (const Shape& shape : shapes) {
    results.emplace_back(shape);
    // Every element has to be written.
    std::fill_n(static_cast<std::byte*>(results.back().mutable_bytes()), results.back().byte_size(),
                std::byte{0xab});
    outputs.push_back(results.back().mutable_bytes());
  }
  call->Run(context, inputs.data(), outputs.data());
  return results;
}

inline double Tolerance(ElementType type) {
  switch (type) {
    case ElementType::kBF16:
      return 2e-2;
    case ElementType::kF16:
      return 2e-3;
    case ElementType::kF32:
    case ElementType::kC64:
      return 2e-5;
    case ElementType::kF64:
    case ElementType::kC128:
      return 1e-12;
    default:
      return 0;
  }
}

inline ::testing::AssertionResult Near(const Literal& got, const std::vector<Number>& expected,
                                       double tolerance) {
  std::vector<Number> numbers = Numbers(got);
  if (numbers.size() != expected.size()) return ::testing::AssertionFailure() << "sizes differ";
  double scale = 1;
  for (const Number& x : expected) scale = std::max(scale, std::abs(x));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!(std::abs(numbers[i] - expected[i]) <= tolerance * scale)) {
      return ::testing::AssertionFailure() << "element " << i << " of " << got.shape().ToString()
                                           << ": " << numbers[i] << ", expected " << expected[i];
    }
  }
  return ::testing::AssertionSuccess();
}

inline ::testing::AssertionResult Near(const Literal& got, const Literal& expected,
                                       double tolerance) {
  return Near(got, Numbers(expected), tolerance);
}

// dot_general by its definition, before the final rounding; integers wrap to the type.
std::vector<Number> NaiveDot(const hlo::Instruction& dot, const Literal& lhs, const Literal& rhs);

// convolution by its definition.
std::vector<Number> NaiveConvolution(const hlo::Instruction& convolution, const Literal& lhs,
                                     const Literal& rhs);

}  // namespace cpu::testing
