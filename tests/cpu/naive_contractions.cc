// Contractions as naive loops. A source of its own, because it is optimized where tests are not: at
// -O0 these loops took a third of the time of all C++ tests.
#include <algorithm>
#include <functional>
#include <numeric>

#include "library_testing.h"

namespace cpu::testing {
namespace {

// Integers wrap to the type; pred is "any".
std::vector<Number> Wrapped(std::vector<Number> numbers, ElementType type) {
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

int64_t Linear(const hlo::Dimensions& index, const hlo::Dimensions& sizes) {
  int64_t linear = 0;
  for (size_t i = 0; i < sizes.size(); ++i) linear = linear * sizes[i] + index[i];
  return linear;
}

// How far apart neighbours along a dimension are.
int64_t Stride(int64_t dimension, const hlo::Dimensions& sizes) {
  return std::accumulate(sizes.begin() + dimension + 1, sizes.end(), int64_t{1},
                         std::multiplies<>());
}

// Without the library's treatment of infinities, which takes most of the time.
Number Times(Number a, Number b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

// dot_general by its definition, before the final rounding.
std::vector<Number> NaiveDot(const hlo::Instruction& dot, const Literal& lhs, const Literal& rhs) {
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
std::vector<Number> NaiveConvolution(const hlo::Instruction& convolution, const Literal& lhs,
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
