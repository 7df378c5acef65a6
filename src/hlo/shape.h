// Shape: an element type and dimensions, or a tuple of shapes. Layout is no part of it: buffers
// that cross a boundary are dense and row-major. Copies share their dimensions: each pass makes
// many, and none changes one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hlo/element_type.h"

namespace hlo {

using Dimensions = std::vector<int64_t>;

// A dimension whose size is known only at run time (StableHLO's `?`). The engine does not run such
// shapes; the form represents them.
inline constexpr int64_t kDynamic = -1;

class Shape {
 public:
  Shape() = default;
  Shape(ElementType element_type, Dimensions dimensions);
  static Shape Scalar(ElementType element_type) { return Shape(element_type, {}); }
  static Shape Token() { return Shape(ElementType::kToken, {}); }
  static Shape Tuple(std::vector<Shape> elements);

  ElementType element_type() const { return element_type_; }
  const Dimensions& dimensions() const { return dimensions_ ? *dimensions_ : kNoDimensions; }
  // Throws Error if there is no such dimension.
  int64_t dimension(int64_t i) const {
    if (static_cast<size_t>(i) >= dimensions().size()) ThrowNoDimension(i);
    return dimensions()[static_cast<size_t>(i)];
  }
  int64_t rank() const { return static_cast<int64_t>(dimensions().size()); }
  bool is_scalar() const { return is_array() && dimensions().empty(); }
  bool is_tuple() const { return element_type_ == ElementType::kTuple; }
  bool is_token() const { return element_type_ == ElementType::kToken; }
  bool is_array() const { return !is_tuple() && !is_token(); }
  bool is_dynamic() const { return is_dynamic_; }
  const std::vector<Shape>& tuple_shapes() const { return elements_ ? *elements_ : kNoElements; }

  // Product of the dimensions; 1 for a scalar. Throws Error if a dimension is dynamic.
  int64_t num_elements() const;
  // num_elements() * ByteWidth; a tuple sums its elements.
  int64_t byte_size() const;
  // The same dimensions with another element type, and the reverse.
  Shape WithElementType(ElementType element_type) const;
  Shape WithDimensions(Dimensions dimensions) const;

  bool operator==(const Shape& other) const;
  size_t Hash() const;
  // "f32[2,3]", "(f32[2], s32[])".
  std::string ToString() const;

 private:
  [[noreturn]] void ThrowNoDimension(int64_t i) const;

  static const Dimensions kNoDimensions;
  static const std::vector<Shape> kNoElements;

  ElementType element_type_ = ElementType::kInvalid;
  bool is_dynamic_ = false;                       // a dimension is, of an element of a tuple, too
  std::shared_ptr<const Dimensions> dimensions_;  // null: none
  std::shared_ptr<const std::vector<Shape>> elements_;  // of a tuple; null: none
};

// Strides, in elements, of the dense row-major layout.
Dimensions RowMajorStrides(std::span<const int64_t> dimensions);
std::string ToString(std::span<const int64_t> numbers);  // "[2, 3]"

}  // namespace hlo

template <>
struct std::hash<hlo::Shape> {
  size_t operator()(const hlo::Shape& shape) const { return shape.Hash(); }
};
