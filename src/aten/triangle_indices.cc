// tril_indices and triu_indices, computed from each element's position.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "aten/op.h"
#include "aten/refused_types.h"

namespace torch_xla {
namespace {

using Options = std::optional<at::ScalarType>;

// The lower triangle of a rectangle, row by row: rows that grow by one element, then full ones.
struct GrowingRows {
  int64_t first_row;      // those above have no elements
  int64_t first_length;   // of that row
  int64_t growing, full;  // rows
  int64_t columns;

  // Elements in front of growing row t.
  int64_t Before(int64_t t) const { return t * first_length + t * (t - 1) / 2; }
  int64_t Count() const { return Before(growing) + full * columns; }
};

GrowingRows RowsOfLowerTriangle(int64_t rows, int64_t columns, int64_t offset) {
  const int64_t first_row = std::clamp<int64_t>(-offset, 0, rows);
  const int64_t first_length = std::clamp<int64_t>(first_row + offset + 1, 0, columns);
  const int64_t left = first_length > 0 ? rows - first_row : 0;
  const int64_t growing = std::min(left, columns - first_length);
  return {first_row, first_length, growing, left - growing, columns};
}

// A growing row, counted from the first, and the elements in front of it.
struct RowOfElement {
  Value row, front;
};

// The growing row of each element k. The root of a square equation is off by a quarter at most:
// rounded down from a third below, it is that row or the one before.
RowOfElement GrowingRow(Builder& b, const GrowingRows& triangle, Value k) {
  auto number = [&](int64_t n) { return b.Full(k->shape(), n); };
  const bool is_narrow = k->element_type() == ElementType::kS32;
  Value real = b.Convert(k, is_narrow ? ElementType::kF32 : ElementType::kF64);
  const double middle = static_cast<double>(triangle.first_length) - 0.5;
  Value root = b.Sqrt(b.Add(Like(b, real, middle * middle), b.Multiply(real, Like(b, real, 2))));
  Value row = b.Convert(b.Subtract(root, Like(b, real, middle + 1. / 3)), k->element_type());
  Value next = b.Add(row, number(1)), length = b.Add(row, number(triangle.first_length));
  Value pairs = b.Binary(Opcode::kShiftRightLogical, b.Multiply(row, next), number(1));
  Value front_of_next = b.Add(b.Multiply(next, number(triangle.first_length)), pairs);
  Value is_next = b.Le(front_of_next, k);
  return {b.Select(is_next, next, row),
          b.Select(is_next, front_of_next, b.Subtract(front_of_next, length))};
}

// Rows and columns, as two rows, of a triangle's elements. The upper triangle's are those of the
// lower one of the rectangle that is turned by half a turn, from the last on.
Value TriangleIndices(Builder& b, int64_t rows, int64_t columns, int64_t offset, bool lower,
                      ElementType type) {
  const GrowingRows triangle =
      RowsOfLowerTriangle(rows, columns, lower ? offset : columns - rows - offset);
  const int64_t count = triangle.Count(), growing = triangle.Before(triangle.growing);
  // Numbers of 32 bits are computed several times as quickly. Up to these the root is near enough.
  constexpr int64_t kNarrowSide = int64_t{1} << 20, kNarrowCount = int64_t{1} << 22;
  const bool is_narrow = std::max(rows, columns) <= kNarrowSide && count <= kNarrowCount;
  const Shape shape(is_narrow ? ElementType::kS32 : ElementType::kS64, {count});
  auto number = [&](int64_t n) { return b.Full(shape, n); };
  Value k = b.Iota(shape, 0);
  if (!lower) k = b.Subtract(number(count - 1), k);
  auto [row, front] = GrowingRow(b, triangle, k);
  Value column = b.Subtract(k, front);
  if (triangle.full > 0) {
    Value rest = b.Subtract(k, number(growing)), is_growing = b.Lt(k, number(growing));
    Value full_row = b.Add(b.Divide(rest, number(columns)), number(triangle.growing));
    row = b.Select(is_growing, row, full_row);
    column = b.Select(is_growing, column, b.Remainder(rest, number(columns)));
  }
  row = b.Add(row, number(triangle.first_row));
  if (!lower) {
    row = b.Subtract(number(rows - 1), row);
    column = b.Subtract(number(columns - 1), column);
  }
  row = b.Convert(row, type);
  column = b.Convert(column, type);
  return b.Concatenate({b.Reshape(row, {1, count}), b.Reshape(column, {1, count})}, 0);
}

at::Tensor TriangleIndexTensor(bool lower, int64_t rows, int64_t columns, int64_t offset,
                               Options dtype, std::optional<at::Device> device) {
  TORCH_CHECK(rows >= 0, "row must be non-negative, got", rows);
  TORCH_CHECK(columns >= 0, "col must be non-negative, got", columns);
  const at::ScalarType type = dtype.value_or(at::kLong);
  CheckKernel(type == at::kInt || type == at::kLong, lower ? "tril_indices" : "triu_indices", type);
  offset = std::clamp(offset, -rows, columns);  // beyond, nothing changes any more
  return RecordOn<&TriangleIndices>(device.value_or(c10::Device(c10::DeviceType::XLA)), rows,
                                    columns, offset, lower, type);
}

at::Tensor TrilIndices(int64_t rows, int64_t columns, int64_t offset, Options dtype,
                       std::optional<at::Layout>, std::optional<at::Device> device,
                       std::optional<bool>) {
  return TriangleIndexTensor(true, rows, columns, offset, dtype, device);
}

at::Tensor TriuIndices(int64_t rows, int64_t columns, int64_t offset, Options dtype,
                       std::optional<at::Layout>, std::optional<at::Device> device,
                       std::optional<bool>) {
  return TriangleIndexTensor(false, rows, columns, offset, dtype, device);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&TriangleIndices>(
      +[](int64_t rows, int64_t columns, int64_t offset, bool lower, at::ScalarType type) {
        return lower ? at::tril_indices(rows, columns, offset, type)
                     : at::triu_indices(rows, columns, offset, type);
      });
  m.impl("tril_indices", &TrilIndices);
  m.impl("triu_indices", &TriuIndices);
}

}  // namespace torch_xla
