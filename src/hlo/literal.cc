#include "hlo/literal.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "hlo/error.h"
#include "hlo/hash.h"
#include "hlo/minifloat.h"
#include "hlo/number_conversion.h"

namespace hlo {
namespace {

// Longer literals are cut in ToString.
constexpr int64_t kPrintedElements = 32;

template <typename T>
void PrintNumber(std::ostream& out, T value) {
  if constexpr (kIsComplex<T>) {
    out << "(" << value.real() << ", " << value.imag() << ")";
  } else if constexpr (kIsReal<T>) {
    out << static_cast<ComputeType<T>>(value);
  } else {
    out << +value;
  }
}

void CheckIndex(const Literal& literal, int64_t index) {
  if (index < 0 || index >= literal.shape().num_elements()) {
    throw Error(ErrorCode::kOutOfRange, "element " + std::to_string(index) +
                                            " was asked of a literal of shape " +
                                            literal.shape().ToString());
  }
}

Literal ScalarFromNumber(ElementType type, auto value) {
  return DispatchNative(type,
                        [&]<typename T>() { return Literal::Scalar<T>(ConvertNumber<T>(value)); });
}

}  // namespace

Literal::Literal(Shape shape)
    : shape_(std::move(shape)),
      data_(std::make_shared<std::vector<std::byte>>(static_cast<size_t>(shape_.byte_size()))) {}

Literal::Literal(Shape shape, const void* data) : shape_(std::move(shape)) {
  auto begin = static_cast<const std::byte*>(data);
  auto size = static_cast<size_t>(shape_.byte_size());
  data_ = size ? std::make_shared<std::vector<std::byte>>(begin, begin + size)
               : std::make_shared<std::vector<std::byte>>();
}

Literal Literal::Splat(const Shape& shape, const Literal& scalar) {
  if (scalar.shape() != Shape::Scalar(shape.element_type())) {
    throw Error("a splat of shape " + shape.ToString() + " needs a scalar of its type, not " +
                scalar.shape().ToString());
  }
  Literal result(shape);
  std::byte* out = result.mutable_bytes();
  size_t width = scalar.byte_size();
  for (size_t i = 0; i < result.byte_size(); i += width) {
    std::memcpy(out + i, scalar.bytes(), width);
  }
  return result;
}

Literal Literal::FromDouble(ElementType type, double value) {
  if (FindMinifloat(type)) {
    const uint8_t bits = RoundToMinifloat(type, value);
    return Literal(Shape::Scalar(type), &bits);
  }
  return ScalarFromNumber(type, value);
}

Literal Literal::FromInt(ElementType type, int64_t value) {
  if (FindMinifloat(type)) return FromDouble(type, static_cast<double>(value));
  return ScalarFromNumber(type, value);
}

std::byte* Literal::mutable_bytes() {
  if (!data_) return nullptr;
  if (data_.use_count() > 1) data_ = std::make_shared<std::vector<std::byte>>(*data_);
  return data_->data();
}

bool Literal::IsSplat() const {
  if (!shape_.is_array() || byte_size() == 0) return false;
  size_t width = ByteWidth(shape_.element_type());
  // Every element equals its successor exactly when the bytes equal themselves one element on.
  return std::memcmp(bytes(), bytes() + width, byte_size() - width) == 0;
}

bool Literal::IsAll(double value) const {
  if (!shape_.is_array()) return false;
  return DispatchNative(shape_.element_type(), [&]<typename T>() {
    return std::ranges::all_of(data<T>(), [&](T element) {
      if constexpr (kIsComplex<T>) {
        return element.imag() == 0 && static_cast<double>(element.real()) == value;
      } else if constexpr (std::is_integral_v<T>) {
        // Compared in both senses, as a 64-bit integer need not fit in a double.
        return static_cast<double>(element) == value && ConvertNumber<T>(value) == element;
      } else {
        return static_cast<double>(element) == value;
      }
    });
  });
}

double Literal::AsDouble(int64_t index) const {
  CheckIndex(*this, index);
  return DispatchNative(shape_.element_type(),
                        [&]<typename T>() { return ConvertNumber<double>(data<T>()[index]); });
}

int64_t Literal::AsInt(int64_t index) const {
  CheckIndex(*this, index);
  return DispatchNative(shape_.element_type(),
                        [&]<typename T>() { return ConvertNumber<int64_t>(data<T>()[index]); });
}

bool Literal::operator==(const Literal& other) const {
  if (shape_ != other.shape_) return false;
  if (data_ == other.data_ || byte_size() == 0) return true;
  return std::memcmp(bytes(), other.bytes(), byte_size()) == 0;
}

size_t Literal::Hash() const {
  return CombineHash(shape_.Hash(), HashBytes({bytes(), byte_size()}));
}

std::string Literal::ToString() const {
  std::ostringstream out;
  out << shape_.ToString();
  if (!shape_.is_array()) return out.str();
  int64_t count = shape_.num_elements();
  int64_t printed = std::min(count, kPrintedElements);
  out << " {";
  auto print_all = [&]<typename T>() {
    for (int64_t i = 0; i < printed; ++i) {
      if (i) out << ", ";
      PrintNumber(out, reinterpret_cast<const T*>(bytes())[i]);
    }
  };
  // Types without a C++ counterpart show their bytes.
  if (ByteWidth(shape_.element_type()) == 1 && BitWidth(shape_.element_type()) != 1 &&
      !IsInteger(shape_.element_type())) {
    print_all.template operator()<uint8_t>();
  } else if (IsInteger(shape_.element_type()) && BitWidth(shape_.element_type()) < 8) {
    IsSignedInteger(shape_.element_type()) ? print_all.template operator()<int8_t>()
                                           : print_all.template operator()<uint8_t>();
  } else {
    DispatchNative(shape_.element_type(), print_all);
  }
  if (printed < count) out << ", ...";
  out << "}";
  return out.str();
}

void Literal::CheckType(ElementType type) const {
  if (type != shape_.element_type()) {
    throw Error(ErrorCode::kInternal, "a literal of shape " + shape_.ToString() +
                                          " was read as elements of type " +
                                          std::string(ShortName(type)));
  }
}

void Literal::CheckSize(const Shape& shape, size_t given) {
  if (static_cast<size_t>(shape.num_elements()) != given) {
    throw Error(std::to_string(given) + " elements were given for a literal of shape " +
                shape.ToString());
  }
}

}  // namespace hlo
