// Weighted sums of neighbours in a plane of f32, as a convolution of one channel has them. A vector
// of the plane is read once for all the rows of the result that it counts for.
#pragma once

#include <cstdint>
#include <span>

namespace cpu {

// Elements that stand below each other in the plane, `TapPlan::step` elements apart.
struct TapColumn {
  int64_t place;  // of the first, for the result's first element
  int64_t taps;   // 1 to kMostTapsInColumn
};
inline constexpr int64_t kMostTapsInColumn = 7;
// Results are written by whole vectors: rows of them are as long as a multiple of this.
inline constexpr int64_t kTapAlignment = 16;

struct TapPlan {
  std::span<const TapColumn> columns;
  int64_t line;         // from one row to the next, in the plane and in the result
  int64_t classes = 1;  // rows of the result whose elements stand below each other are as far apart

  int64_t step() const { return line * classes; }
};

// out[r * line + c] = the sum over all taps of weight * plane[place + r * line + c], for `rows`
// rows of `length` elements; what is behind them in a line is anything. The weights are in the
// order of the columns, each from its first tap on. The order of summation follows from the plan
// alone.
void SumTaps(const TapPlan& plan, const float* plane, const float* weights, int64_t rows,
             int64_t length, float* out);

}  // namespace cpu
