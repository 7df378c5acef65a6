// What the tests of the library calls share: random literals, running a bound instruction,
// comparing with tolerance, and contractions as naive loops.
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

// Integers wrap to the type; pred is "any".
inline std::vector<Number> Wrapped(std::vector<Number> numbers, ElementType type) {
  for (Number& x : numbers) {
    if (type == ElementType::kPred) x = x.real() != 0;
    if (!hlo::IsInteger(type)) continue;
    hlo::DispatchNative(type, [&]<typename T>() {
      if constexpr (std::is_integral_v<T>) {
        x = static_cast<double>(static_cast<T>(static_cast<int64_t>(x.real())));
      }
    });
  }
  return numbers;
}

class Index {
 public:
  explicit Index(hlo::Dimensions sizes) : sizes_(std::move(sizes)), at_(sizes_.size(), 0) {}
  const hlo::Dimensions& operator*() const { return at_; }
  bool Next() {
    for (size_t i = sizes_.size(); i-- > 0;) {
      if (++at_[i] < sizes_[i]) return true;
      at_[i] = 0;
    }
    return false;
  }

 private:
  hlo::Dimensions sizes_, at_;
};

inline int64_t Linear(const hlo::Dimensions& index, const hlo::Dimensions& sizes) {
  int64_t linear = 0;
  for (size_t i = 0; i < sizes.size(); ++i) linear = linear * sizes[i] + index[i];
  return linear;
}

// How far apart neighbours along a dimension are.
inline int64_t Stride(int64_t dimension, const hlo::Dimensions& sizes) {
  return std::accumulate(sizes.begin() + dimension + 1, sizes.end(), int64_t{1},
                         std::multiplies<>());
}

// Without the library's treatment of infinities, which takes most of the time.
inline Number Times(Number a, Number b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// dot_general by its definition, before the final rounding.
inline std::vector<Number> NaiveDot(const hlo::Instruction& dot, const Literal& lhs,
                                    const Literal& rhs) {
  const auto& d = dot.as<hlo::DotAttributes>();
  auto a = Numbers(lhs), b = Numbers(rhs);
  std::vector<Number> result(dot.shape().num_elements());
  auto free = [](const Shape& shape, const hlo::Dimensions& batch,
                 const hlo::Dimensions& contracting) {
    hlo::Dimensions rest;
    for (int64_t i = 0; i < shape.rank(); ++i) {
      if (std::count(batch.begin(), batch.end(), i) == 0 &&
          std::count(contracting.begin(), contracting.end(), i) == 0) {
        rest.push_back(i);
      }
    }
    return rest;
  };
  auto lhs_free = free(lhs.shape(), d.lhs_batching_dimensions, d.lhs_contracting_dimensions);
  auto rhs_free = free(rhs.shape(), d.rhs_batching_dimensions, d.rhs_contracting_dimensions);
  hlo::Dimensions inner;
  for (int64_t i : d.lhs_contracting_dimensions) inner.push_back(lhs.shape().dimension(i));
  if (result.empty()) return result;
  Index out(dot.dimensions());
  do {
    hlo::Dimensions i(lhs.shape().rank()), j(rhs.shape().rank());
    size_t at = 0;
    for (size_t n = 0; n < d.lhs_batching_dimensions.size(); ++n, ++at) {
      i[d.lhs_batching_dimensions[n]] = j[d.rhs_batching_dimensions[n]] = (*out)[at];
    }
    for (int64_t f : lhs_free) i[f] = (*out)[at++];
    for (int64_t f : rhs_free) j[f] = (*out)[at++];
    Number sum = 0;
    Index k(inner);
    if (std::count(inner.begin(), inner.end(), 0) == 0) {
      do {
        for (size_t n = 0; n < inner.size(); ++n) {
          i[d.lhs_contracting_dimensions[n]] = j[d.rhs_contracting_dimensions[n]] = (*k)[n];
        }
        sum +=
            Times(a[Linear(i, lhs.shape().dimensions())], b[Linear(j, rhs.shape().dimensions())]);
      } while (k.Next());
    }
    result[Linear(*out, dot.dimensions())] = sum;
  } while (out.Next());
  return Wrapped(result, dot.element_type());
}

// convolution by its definition.
inline std::vector<Number> NaiveConvolution(const hlo::Instruction& convolution, const Literal& lhs,
                                            const Literal& rhs) {
  const auto& c = convolution.as<hlo::ConvolutionAttributes>();
  const auto& d = c.dimensions;
  const auto& w = c.window;
  auto a = Numbers(lhs), b = Numbers(rhs);
  const auto& ls = lhs.shape().dimensions();
  const auto& rs = rhs.shape().dimensions();
  std::vector<Number> result(convolution.shape().num_elements());
  if (result.empty()) return result;
  int64_t rank = static_cast<int64_t>(d.input_spatial_dimensions.size());
  int64_t inputs = rs[d.kernel_input_feature_dimension];
  int64_t outputs = rs[d.kernel_output_feature_dimension];
  int64_t batch_part = ls[d.input_batch_dimension] / c.batch_group_count;
  hlo::Dimensions taps;
  for (int64_t i : d.kernel_spatial_dimensions) taps.push_back(rs[i]);
  const bool complex = hlo::IsComplex(convolution.element_type());
  const int64_t a_stride = Stride(d.input_feature_dimension, ls);
  const int64_t b_stride = Stride(d.kernel_input_feature_dimension, rs);
  Index out(convolution.dimensions());
  do {
    int64_t o = (*out)[d.output_feature_dimension];
    int64_t group = o / (outputs / c.feature_group_count);
    int64_t batch_group = o / (outputs / c.batch_group_count);
    Number sum = 0;
    Index tap(taps);
    hlo::Dimensions i(ls.size()), k(rs.size());
    do {
      bool inside = true;
      for (int64_t s = 0; s < rank; ++s) {
        int64_t t = (*tap)[s];
        int64_t at = (*out)[d.output_spatial_dimensions[s]] * w.strides[s] +
                     t * w.window_dilations[s] - w.padding_low[s];
        inside &= at >= 0 && at % w.base_dilations[s] == 0 &&
                  at / w.base_dilations[s] < ls[d.input_spatial_dimensions[s]];
        if (inside) i[d.input_spatial_dimensions[s]] = at / w.base_dilations[s];
        bool reversed = !w.reversal.empty() && w.reversal[s];
        k[d.kernel_spatial_dimensions[s]] = reversed ? taps[s] - 1 - t : t;
      }
      if (!inside) continue;
      i[d.input_batch_dimension] = (*out)[d.output_batch_dimension] + batch_group * batch_part;
      k[d.kernel_output_feature_dimension] = o;
      i[d.input_feature_dimension] = group * inputs;
      const Number *x = &a[Linear(i, ls)], *y = &b[Linear(k, rs)];
      if (complex) {
        for (int64_t f = 0; f < inputs; ++f) sum += Times(x[f * a_stride], y[f * b_stride]);
      } else {
        double real = 0;
        for (int64_t f = 0; f < inputs; ++f)
          real += x[f * a_stride].real() * y[f * b_stride].real();
        sum += real;
      }
    } while (tap.Next());
    result[Linear(*out, convolution.dimensions())] = sum;
  } while (out.Next());
  return Wrapped(result, convolution.element_type());
}

}  // namespace cpu::testing
