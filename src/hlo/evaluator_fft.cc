// fft as the definition of the discrete Fourier transform, dimension by dimension.
#include <numbers>

#include "hlo/evaluation.h"

namespace hlo::evaluation {
namespace {

using Complex = std::complex<double>;

struct Grid {
  Dimensions dimensions;
  std::vector<Complex> values;
};

// Transforms one dimension. `sign` is -1 forward, +1 inverse; the inverse is divided by its length.
void Transform(Grid& grid, int64_t dimension, int sign) {
  int64_t n = grid.dimensions[dimension];
  int64_t stride = RowMajorStrides(grid.dimensions)[dimension];
  std::vector<Complex> roots(n), row(n);
  for (int64_t k = 0; k < n; ++k) {
    roots[k] = std::polar(
        1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
  }
  Dimensions rows = grid.dimensions, strides = RowMajorStrides(grid.dimensions);
  rows[dimension] = n == 0 ? 0 : 1;
  ForEachIndex(rows, [&](const Dimensions& index, int64_t) {
    Complex* first = grid.values.data() + Dot(index, strides);
    for (int64_t k = 0; k < n; ++k) {
      Complex sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += first[j * stride] * roots[j * k % n];
      row[k] = sign > 0 ? sum / static_cast<double>(n) : sum;
    }
    for (int64_t k = 0; k < n; ++k) first[k * stride] = row[k];
  });
}

// The last dimension with another size: cut, or extended by `at(source row, k)`.
template <typename At>
Grid ResizeLast(const Grid& grid, int64_t size, At&& at) {
  Grid result{grid.dimensions, {}};
  int64_t old_size = grid.dimensions.back();
  result.dimensions.back() = size;
  int64_t rows = old_size == 0 ? 0 : static_cast<int64_t>(grid.values.size()) / old_size;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < size; ++k) {
      result.values.push_back(at(grid.values.data() + row * old_size, k));
    }
  }
  return result;
}

Grid RealTransform(Grid grid, int64_t last) {
  Transform(grid, last, -1);
  return ResizeLast(grid, grid.dimensions.back() / 2 + 1,
                    [](const Complex* row, int64_t k) { return row[k]; });
}

// From half a spectrum to real numbers: the other half is the conjugate; imaginary parts that a
// real signal cannot have (of frequency 0 and, for even n, n/2) are ignored.
Grid InverseRealTransform(const Grid& half, int64_t last, int64_t n) {
  Grid grid = ResizeLast(half, n, [n](const Complex* row, int64_t k) {
    if (k == 0 || 2 * k == n) return Complex(row[k].real());
    return k <= n / 2 ? row[k] : std::conj(row[n - k]);
  });
  Transform(grid, last, +1);
  return grid;
}

}  // namespace

Leaves EvaluateFft(const Instruction& instruction, const Leaves& operands) {
  const auto& fft = instruction.as<FftAttributes>();
  Grid grid{operands[0].shape().dimensions(), ReadAs<Complex>(operands[0])};
  auto rank = static_cast<int64_t>(grid.dimensions.size());
  int64_t first = rank - static_cast<int64_t>(fft.length.size()), last = rank - 1;
  if (instruction.shape().num_elements() == 0) return {Literal(instruction.shape())};
  switch (fft.type) {
    case FftType::kFft:
      for (int64_t i = first; i <= last; ++i) Transform(grid, i, -1);
      break;
    case FftType::kIfft:
      for (int64_t i = first; i <= last; ++i) Transform(grid, i, +1);
      break;
    case FftType::kRfft:
      grid = RealTransform(std::move(grid), last);
      for (int64_t i = first; i < last; ++i) Transform(grid, i, -1);
      break;
    case FftType::kIrfft:
      for (int64_t i = first; i < last; ++i) Transform(grid, i, +1);
      grid = InverseRealTransform(grid, last, fft.length.back());
      break;
  }
  return {WriteAs(instruction.shape(), grid.values)};
}

}  // namespace hlo::evaluation
