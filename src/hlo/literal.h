// Literal: a host tensor with its data, dense and row-major.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hlo/shape.h"

namespace hlo {

// Copies share the data (it is copied on the first write through mutable_data). Pred is one byte, 0
// or 1; sub-byte types one byte each.
class Literal {
 public:
  Literal() = default;
  // All elements zero.
  explicit Literal(Shape shape);
  // Copies `shape.byte_size()` bytes.
  Literal(Shape shape, const void* data);

  template <typename T>
  static Literal Scalar(T value) {
    return Literal(Shape::Scalar(kElementTypeOf<T>), &value);
  }
  template <typename T>
  static Literal FromVector(const std::vector<T>& values) {
    return FromVector(values, {static_cast<int64_t>(values.size())});
  }
  template <typename T>
  static Literal FromVector(const std::vector<T>& values, Dimensions dimensions) {
    Literal literal(Shape(kElementTypeOf<T>, std::move(dimensions)));
    auto out = literal.mutable_data<T>();
    CheckSize(literal.shape(), values.size());
    for (size_t i = 0; i < values.size(); ++i) out[i] = values[i];
    return literal;
  }
  // `scalar`'s value in every element of `shape` (same element type).
  static Literal Splat(const Shape& shape, const Literal& scalar);
  // A scalar of any native element type from a number, converted as a C++ cast would.
  static Literal FromDouble(ElementType type, double value);
  static Literal FromInt(ElementType type, int64_t value);

  const Shape& shape() const { return shape_; }
  const std::byte* bytes() const { return data_ ? data_->data() : nullptr; }
  std::byte* mutable_bytes();
  size_t byte_size() const { return data_ ? data_->size() : 0; }

  template <typename T>
  std::span<const T> data() const {
    CheckType(kElementTypeOf<T>);
    return {reinterpret_cast<const T*>(bytes()), byte_size() / sizeof(T)};
  }
  template <typename T>
  std::span<T> mutable_data() {
    CheckType(kElementTypeOf<T>);
    return {reinterpret_cast<T*>(mutable_bytes()), byte_size() / sizeof(T)};
  }

  // True if all elements have the same bytes (and there is at least one).
  bool IsSplat() const;
  // True if every element equals `value` numerically. False for tuples and tokens.
  bool IsAll(double value) const;
  // The element at a row-major index as a number; complex gives the real part.
  double AsDouble(int64_t index = 0) const;
  int64_t AsInt(int64_t index = 0) const;

  // Same shape, same bytes.
  bool operator==(const Literal& other) const;
  size_t Hash() const;
  // "f32[2] {1, 2}"; long ones are cut.
  std::string ToString() const;

 private:
  void CheckType(ElementType type) const;
  static void CheckSize(const Shape& shape, size_t given);

  Shape shape_;
  std::shared_ptr<std::vector<std::byte>> data_;
};

}  // namespace hlo
