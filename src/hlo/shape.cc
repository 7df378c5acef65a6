#include "hlo/shape.h"

#include <algorithm>

#include "hlo/error.h"
#include "hlo/hash.h"

namespace hlo {

constinit const Dimensions Shape::kNoDimensions{};
constinit const std::vector<Shape> Shape::kNoElements{};

Shape::Shape(ElementType element_type, Dimensions dimensions) : element_type_(element_type) {
  for (int64_t size : dimensions) {
    if (size < 0 && size != kDynamic) {
      throw Error("a shape has the negative dimension " + std::to_string(size) + ": " +
                  hlo::ToString(dimensions));
    }
    is_dynamic_ |= size == kDynamic;
  }
  if (!dimensions.empty()) dimensions_ = std::make_shared<const Dimensions>(std::move(dimensions));
}

Shape Shape::Tuple(std::vector<Shape> elements) {
  Shape shape;
  shape.element_type_ = ElementType::kTuple;
  shape.is_dynamic_ = std::ranges::any_of(elements, &Shape::is_dynamic);
  if (!elements.empty()) {
    shape.elements_ = std::make_shared<const std::vector<Shape>>(std::move(elements));
  }
  return shape;
}

bool Shape::operator==(const Shape& other) const {
  return element_type_ == other.element_type_ &&
         (dimensions_ == other.dimensions_ || dimensions() == other.dimensions()) &&
         (elements_ == other.elements_ || tuple_shapes() == other.tuple_shapes());
}

void Shape::ThrowNoDimension(int64_t i) const {
  throw Error(ErrorCode::kOutOfRange, ToString() + " has no dimension " + std::to_string(i));
}

int64_t Shape::num_elements() const {
  int64_t count = 1;
  bool overflow = false;
  for (int64_t size : dimensions()) {
    if (size == kDynamic) {
      throw Error("the number of elements of " + ToString() + " is known only at run time");
    }
    if (size == 0) return 0;
    overflow |= __builtin_mul_overflow(count, size, &count);
  }
  if (overflow) throw Error("the number of elements of " + ToString() + " exceeds 64 bits");
  return count;
}

int64_t Shape::byte_size() const {
  if (is_token()) return 0;
  int64_t total = 0;
  bool overflow = false;
  if (is_tuple()) {
    for (const Shape& element : tuple_shapes()) {
      overflow |= __builtin_add_overflow(total, element.byte_size(), &total);
    }
  } else {
    overflow = __builtin_mul_overflow(num_elements(),
                                      static_cast<int64_t>(ByteWidth(element_type_)), &total);
  }
  if (overflow) throw Error("the size of " + ToString() + " exceeds 64 bits");
  return total;
}

Shape Shape::WithElementType(ElementType element_type) const {
  Shape shape;
  shape.element_type_ = element_type;
  shape.is_dynamic_ = is_dynamic_;
  shape.dimensions_ = dimensions_;
  return shape;
}

Shape Shape::WithDimensions(Dimensions dimensions) const {
  return Shape(element_type_, std::move(dimensions));
}

size_t Shape::Hash() const {
  size_t hash = static_cast<size_t>(element_type_);
  hash = CombineHash(hash, dimensions().size());
  for (int64_t size : dimensions()) hash = CombineHash(hash, static_cast<size_t>(size));
  for (const Shape& element : tuple_shapes()) hash = CombineHash(hash, element.Hash());
  return hash;
}

std::string Shape::ToString() const {
  if (is_tuple()) {
    std::string text = "(";
    for (size_t i = 0; i < tuple_shapes().size(); ++i) {
      text += (i ? ", " : "") + tuple_shapes()[i].ToString();
    }
    return text + ")";
  }
  std::string text(ShortName(element_type_));
  if (is_token()) return text;
  text += "[";
  for (size_t i = 0; i < dimensions().size(); ++i) {
    if (i) text += ",";
    text += dimensions()[i] == kDynamic ? "?" : std::to_string(dimensions()[i]);
  }
  return text + "]";
}

Dimensions RowMajorStrides(std::span<const int64_t> dimensions) {
  Dimensions strides(dimensions.size());
  int64_t stride = 1;
  for (size_t i = dimensions.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dimensions[i];
  }
  return strides;
}

std::string ToString(std::span<const int64_t> numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i) {
    text += (i ? ", " : "") + std::to_string(numbers[i]);
  }
  return text + "]";
}

}  // namespace hlo
