#include "aten/small_rows.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "aten/host_tensor.h"
#include "aten/mask_bytes.h"
#include "aten/small_loops.h"

namespace torch_xla {
namespace {

// Beyond, torch's kernels may take several threads.
constexpr int64_t kMostOfRows = 1 << 16;

bool LieTogether(const at::Tensor& x, at::ScalarType type) {
  return x.scalar_type() == type && x.is_contiguous() && !x.is_neg();
}

// Rows of a float32 array, and a list of positions among them.
class PlacedRows {
 public:
  PlacedRows(const at::Tensor& x, const at::Tensor& positions) {
    if (!LieTogether(x, at::kFloat) || x.dim() == 0 || x.numel() == 0) return;
    if (!LieTogether(positions, at::kLong) || positions.dim() != 1) return;
    size_ = x.size(0);
    width_ = x.numel() / size_;
    count_ = positions.numel();
    positions_ = positions.const_data_ptr<int64_t>();
    fits_ = x.numel() <= kMostOfRows && count_ * width_ <= kMostOfRows;
  }
  bool fits() const { return fits_; }
  int64_t width() const { return width_; }
  int64_t count() const { return count_; }
  bool are_within(int64_t lowest) const {
    return std::all_of(positions_, positions_ + count_,
                       [&](int64_t position) { return position >= lowest && position < size_; });
  }
  // Where it begins.
  int64_t Element(int64_t i) const {
    const int64_t position = positions_[i];
    return (position < 0 ? position + size_ : position) * width_;
  }
  int64_t size() const { return size_; }

 private:
  bool fits_ = false;
  int64_t size_ = 0, width_ = 0, count_ = 0;
  const int64_t* positions_ = nullptr;
};

bool AreRowsOf(const at::Tensor& rows, const at::Tensor& x, int64_t count) {
  return LieTogether(rows, at::kFloat) && rows.dim() == x.dim() && rows.size(0) == count &&
         rows.sizes().slice(1) == x.sizes().slice(1);
}

}  // namespace

at::Tensor TakeRowsOnHost(const at::Tensor& x, const at::Tensor& positions) {
  const PlacedRows rows(x, positions);
  if (!rows.fits() || !rows.are_within(-rows.size())) return {};
  at::DimVector sizes(x.sizes());
  sizes[0] = rows.count();
  at::Tensor result(at::detail::empty_cpu(sizes, at::kFloat));
  const auto* from = x.const_data_ptr<float>();
  auto* to = result.mutable_data_ptr<float>();
  const int64_t width = rows.width();
  for (int64_t i = 0; i < rows.count(); ++i, to += width) {
    const float* row = from + rows.Element(i);
    if (width == 1) {
      *to = *row;
    } else {
      std::memcpy(to, row, width * sizeof(float));
    }
  }
  return result;
}

at::Tensor AddRowsOnHost(const at::Tensor& x, const at::Tensor& positions,
                         const at::Tensor& added) {
  const PlacedRows rows(x, positions);
  if (!rows.fits() || !AreRowsOf(added, x, rows.count()) || !rows.are_within(0)) return {};
  at::Tensor result = Writable(x);
  const auto* from = added.const_data_ptr<float>();
  auto* to = result.mutable_data_ptr<float>();
  const int64_t width = rows.width();
  for (int64_t i = 0; i < rows.count(); ++i, from += width) {
    small_loops::AddTo(to + rows.Element(i), from, width);
  }
  return result;
}

// A sum is written for each element, so that no branch depends on the mask; where nothing is added
// it is with zero, as in the sum of arrays that this is.
at::Tensor AddSelectedOnHost(const at::Tensor& x, const at::Tensor& mask,
                             const at::Tensor& values) {
  const bool fits = LieTogether(x, at::kFloat) && LieTogether(mask, at::kBool) &&
                    LieTogether(values, at::kFloat) && mask.sizes() == x.sizes() &&
                    values.numel() > 0 && x.numel() <= kMostOfRows;
  if (!fits) return {};
  const auto* is_true = static_cast<const uint8_t*>(mask.const_data_ptr());
  const int64_t size = x.numel();
  if (CountTrueBytes(is_true, size) > values.numel()) return {};
  at::Tensor result = Writable(x);
  const auto* next = values.const_data_ptr<float>();
  auto* to = result.mutable_data_ptr<float>();
  int64_t end = size;  // behind the last true one: up to there a value is left to be read
  while (end > 0 && is_true[end - 1] == 0) --end;
  for (int64_t i = 0; i < end; ++i) {
    const uint32_t is_added = is_true[i] != 0 ? 1 : 0;
    to[i] += std::bit_cast<float>(std::bit_cast<uint32_t>(*next) & (0 - is_added));
    next += is_added;
  }
  for (int64_t i = end; i < size; ++i) to[i] += 0.0f;
  return result;
}

}  // namespace torch_xla
