#include "aten/small_forms.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "aten/eager_form.h"
#include "aten/host_tensor.h"

namespace torch_xla {
namespace {

// Beyond, the wider vectors of torch's kernels are worth their preparation.
constexpr int64_t kMostNumbers = 1 << 13;

bool AreTogether(const at::Tensor& x, at::ScalarType type) {
  return x.scalar_type() == type && x.is_contiguous() && !x.is_neg();
}
bool AreFloatsTogether(const at::Tensor& x) { return AreTogether(x, at::kFloat); }

// One that is stretched, as the gradient of a sum is.
bool IsOneFloat(const at::Tensor& x) {
  if (x.scalar_type() != at::kFloat || x.is_neg() || x.numel() == 0) return false;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (x.size(d) != 1 && x.stride(d) != 0) return false;
  }
  return true;
}

// One operand of a loop over `count` numbers.
class SmallOperand {
 public:
  SmallOperand(const at::Tensor& x, int64_t count) {
    if (x.numel() == count && AreFloatsTogether(x)) {
      operand_.data = x.const_data_ptr<float>();
    } else if (x.numel() == 1 && !x.is_neg()) {
      operand_.is_number = true;
      if (ReadNumber(x, count)) operand_.data = &number_;
    } else if (x.numel() == count && IsOneFloat(x)) {
      operand_ = {x.const_data_ptr<float>(), true};
    }
  }
  SmallOperand(const SmallOperand&) = delete;
  bool fits() const { return operand_.data != nullptr; }
  const small_loops::Operand& operand() const { return operand_; }

 private:
  // Where the result is of float32, numbers of these types are converted to it; a float64 that has
  // dimensions is not, but what is computed with it, as is one beside a number.
  bool ReadNumber(const at::Tensor& x, int64_t count) {
    switch (x.scalar_type()) {
      case at::kFloat:
        number_ = *x.const_data_ptr<float>();
        return true;
      case at::kDouble:
        if (x.dim() != 0 || count == 1) return false;
        number_ = static_cast<float>(*x.const_data_ptr<double>());
        return true;
      case at::kLong:
        number_ = static_cast<float>(*x.const_data_ptr<int64_t>());
        return true;
      default:
        return false;
    }
  }

  small_loops::Operand operand_;
  float number_ = 0;
};

// How many, if they are few; -1: they are more, or others, or nothing is known of them, as where
// torch's kernel is asked what it refuses (refusal.cc).
int64_t FewFloatsOf(const lazy::Operation& operation) {
  if (operation.result_shapes().empty()) return -1;
  const hlo::Shape& shape = *operation.result_shape(0);
  if (shape.element_type() != hlo::ElementType::kF32) return -1;
  const int64_t count = shape.num_elements();
  return count <= kMostNumbers ? count : -1;
}

at::Tensor NewResult(const lazy::Operation& operation, at::ScalarType type = at::kFloat) {
  return at::Tensor(at::detail::empty_cpu(operation.result_shape(0)->dimensions(), type));
}

class SmallUnary final : public lazy::EagerForm {
 public:
  SmallUnary(const lazy::EagerForm* form, small_loops::UnaryLoop loop) : form_(form), loop_(loop) {}

  std::vector<at::Tensor> Run(const lazy::Operation& operation,
                              std::span<const at::Tensor> operands) const override {
    const at::Tensor& x = operands[0];
    const int64_t count = FewFloatsOf(operation);
    const bool are_together = x.numel() == count && AreFloatsTogether(x);
    if (!are_together && (x.numel() != count || !IsOneFloat(x)))
      return form_->Run(operation, operands);
    at::Tensor result = NewResult(operation);
    auto* const to = result.mutable_data_ptr<float>();
    loop_(x.const_data_ptr<float>(), to, are_together ? count : 1);
    if (!are_together) std::fill(to + 1, to + count, *to);
    return eager::AsList(std::move(result));
  }

 private:
  const lazy::EagerForm* const form_;
  const small_loops::UnaryLoop loop_;
};

// An operand as the rows of a matrix that it is stretched to, each numbers that lie together or one
// that stands for as many.
template <typename T>
class OperandInRows {
 public:
  // None if `x`, of that type, is none beside a result of these dimensions.
  OperandInRows(const at::Tensor& x, at::ScalarType type, const hlo::Dimensions& dimensions) {
    if (dimensions.size() != 2 || x.scalar_type() != type || x.is_neg() || x.numel() == 0) return;
    const int64_t rank = x.dim();
    if (rank != 1 && rank != 2) return;
    const int64_t rows = rank == 2 ? x.size(0) : 1, width = x.size(rank - 1);
    if ((rows != 1 && rows != dimensions[0]) || (width != 1 && width != dimensions[1])) return;
    is_number_ = width == 1 || x.stride(rank - 1) == 0;
    if (!is_number_ && x.stride(rank - 1) != 1) return;
    step_ = rows == 1 ? 0 : x.stride(0);
    data_ = x.const_data_ptr<T>();
  }
  bool fits() const { return data_ != nullptr; }
  bool is_number() const { return is_number_; }
  small_loops::OperandOf<T> InRow(int64_t row) const { return {data_ + row * step_, is_number_}; }

 private:
  const T* data_ = nullptr;
  int64_t step_ = 0;
  bool is_number_ = false;
};

// Calls the loop for each row of the result, which has numbers. Undefined where an operand is none
// in rows, or both are one number in each.
template <typename T, typename Result>
at::Tensor ByRows(const lazy::Operation& operation, std::span<const at::Tensor> operands,
                  at::ScalarType type, at::ScalarType result_type,
                  void (*loop)(small_loops::OperandOf<T>, small_loops::OperandOf<T>, Result*,
                               int64_t)) {
  const hlo::Dimensions& dimensions = operation.result_shape(0)->dimensions();
  const OperandInRows<T> x(operands[0], type, dimensions), y(operands[1], type, dimensions);
  if (!x.fits() || !y.fits() || (x.is_number() && y.is_number())) return {};
  at::Tensor result = NewResult(operation, result_type);
  auto* to = result.mutable_data_ptr<Result>();
  for (int64_t row = 0; row < dimensions[0]; ++row, to += dimensions[1]) {
    loop(x.InRow(row), y.InRow(row), to, dimensions[1]);
  }
  return result;
}

class SmallBinary final : public lazy::EagerForm {
 public:
  SmallBinary(const lazy::EagerForm* form, small_loops::BinaryLoop loop)
      : form_(form), loop_(loop) {}

  std::vector<at::Tensor> Run(const lazy::Operation& operation,
                              std::span<const at::Tensor> operands) const override {
    const int64_t count = FewFloatsOf(operation);
    if (count <= 0) return form_->Run(operation, operands);
    const SmallOperand x(operands[0], count), y(operands[1], count);
    at::Tensor result;
    if (x.fits() && y.fits() && !(x.operand().is_number && y.operand().is_number)) {
      result = NewResult(operation);
      loop_(x.operand(), y.operand(), result.mutable_data_ptr<float>(), count);
    } else {
      result = ByRows<float>(operation, operands, at::kFloat, at::kFloat, loop_);
    }
    if (!result.defined()) return form_->Run(operation, operands);
    return eager::AsList(std::move(result));
  }

 private:
  const lazy::EagerForm* const form_;
  const small_loops::BinaryLoop loop_;
};

// How many bools, if they are few; -1 as above.
int64_t FewBoolsOf(const lazy::Operation& operation) {
  if (operation.result_shapes().empty()) return -1;
  const hlo::Shape& shape = *operation.result_shape(0);
  const int64_t count = shape.num_elements();
  return shape.element_type() == hlo::ElementType::kPred && count <= kMostNumbers ? count : -1;
}

// int64 is compared with int64 alone: other types may be compared as another one.
small_loops::OperandOf<int64_t> IntegersOf(const at::Tensor& x, int64_t count) {
  if (!AreTogether(x, at::kLong) || (x.numel() != count && x.numel() != 1)) return {};
  return {x.const_data_ptr<int64_t>(), x.numel() != count};
}

class SmallComparison final : public lazy::EagerForm {
 public:
  SmallComparison(const lazy::EagerForm* form, const small_loops::CompareLoops& loops)
      : form_(form), loops_(loops) {}

  std::vector<at::Tensor> Run(const lazy::Operation& operation,
                              std::span<const at::Tensor> operands) const override {
    const int64_t count = FewBoolsOf(operation);
    if (count <= 0) return form_->Run(operation, operands);
    at::Tensor result;
    if (const auto x = IntegersOf(operands[0], count); x.data != nullptr) {
      const auto y = IntegersOf(operands[1], count);
      if (y.data != nullptr && !(x.is_number && y.is_number)) {
        result = NewResult(operation, at::kBool);
        loops_.of_integers(x, y, result.mutable_data_ptr<bool>(), count);
      }
    } else if (operands[0].scalar_type() == at::kLong) {
      result = ByRows<int64_t>(operation, operands, at::kLong, at::kBool, loops_.of_integers);
    } else if (AreFloatsTogether(operands[0]) && operands[0].numel() == count) {
      // As float32, into which the other's number is converted.
      const SmallOperand floats(operands[0], count), other(operands[1], count);
      if (other.fits()) {
        result = NewResult(operation, at::kBool);
        loops_.of_floats(floats.operand(), other.operand(), result.mutable_data_ptr<bool>(), count);
      }
    }
    if (!result.defined()) return form_->Run(operation, operands);
    return eager::AsList(std::move(result));
  }

 private:
  const lazy::EagerForm* const form_;
  const small_loops::CompareLoops loops_;
};

const uint8_t* BytesOf(const at::Tensor& bools) {
  return static_cast<const uint8_t*>(bools.const_data_ptr());
}

// Of one operand or two, as the loop has it.
template <typename Loop>
class SmallOfBools final : public lazy::EagerForm {
 public:
  SmallOfBools(const lazy::EagerForm* form, Loop loop) : form_(form), loop_(loop) {}

  std::vector<at::Tensor> Run(const lazy::Operation& operation,
                              std::span<const at::Tensor> operands) const override {
    const int64_t count = FewBoolsOf(operation);
    for (const at::Tensor& x : operands) {
      const bool fits = x.numel() == count && AreTogether(x, at::kBool);
      if (!fits) return form_->Run(operation, operands);
    }
    at::Tensor result = NewResult(operation, at::kBool);
    auto* const to = result.mutable_data_ptr<bool>();
    if constexpr (std::is_same_v<Loop, small_loops::BoolLoop>) {
      loop_(BytesOf(operands[0]), BytesOf(operands[1]), to, count);
    } else {
      loop_(BytesOf(operands[0]), to, count);
    }
    return eager::AsList(std::move(result));
  }

 private:
  const lazy::EagerForm* const form_;
  const Loop loop_;
};

// What a Python number is as float32; torch's kernels refuse those that are none.
std::optional<float> FloatOf(const at::Scalar& number) {
  const bool may_fit = number.isFloatingPoint() || number.isIntegral(/*includeBool=*/true);
  const double value = may_fit ? number.to<double>() : 0;
  constexpr double kMost = std::numeric_limits<float>::max();
  if (!may_fit || (std::isfinite(value) && std::abs(value) > kMost)) return std::nullopt;
  return number.to<float>();
}

// A mask over a matrix, which may be one row or one column of it.
struct MaskInRows {
  const uint8_t* data = nullptr;
  int64_t rows = 1, width = 1, step = 0;
  bool is_column = false;  // one for each row

  static MaskInRows Over(const at::Tensor& x, const at::Tensor& mask) {
    if (!AreTogether(mask, at::kBool) || mask.numel() == 0) return {};
    if (mask.sizes() == x.sizes()) return {BytesOf(mask), 1, x.numel(), 0, false};
    if (x.dim() != 2 || mask.dim() != 2) return {};
    const int64_t rows = x.size(0), width = x.size(1);
    if (mask.size(0) == rows && mask.size(1) == 1) return {BytesOf(mask), rows, width, 1, true};
    if (mask.size(0) == 1 && mask.size(1) == width) return {BytesOf(mask), rows, width, 0, false};
    return {};
  }
};

}  // namespace

void RunSmallBy(lazy::OperationKind& kind, const small_loops::CompareLoops& loops) {
  kind.eager_form = new SmallComparison(kind.eager_form, loops);  // kinds live for ever
}
void RunSmallBoolsBy(lazy::OperationKind& kind, small_loops::BoolLoop loop) {
  kind.eager_form = new SmallOfBools(kind.eager_form, loop);
}
void RunSmallBoolsBy(lazy::OperationKind& kind, small_loops::BoolUnaryLoop loop) {
  kind.eager_form = new SmallOfBools(kind.eager_form, loop);
}

at::Tensor FillWhereOnHost(const at::Tensor& x, const at::Tensor& mask, const at::Scalar& number) {
  if (!AreFloatsTogether(x) || x.numel() > kMostNumbers) return {};
  const MaskInRows rows = MaskInRows::Over(x, mask);
  const std::optional<float> value = FloatOf(number);
  if (rows.data == nullptr || !value) return {};
  at::Tensor result = Writable(x);
  auto* to = result.mutable_data_ptr<float>();
  for (int64_t row = 0; row < rows.rows; ++row, to += rows.width) {
    const uint8_t* is_filled = rows.data + row * rows.step;
    if (!rows.is_column) {
      small_loops::FillWhere(is_filled, *value, to, rows.width);
    } else if (*is_filled != 0) {
      std::fill_n(to, rows.width, *value);
    }
  }
  return result;
}

at::Tensor ChooseOnHost(const at::Tensor& is_x, const at::Tensor& x, const at::Tensor& y) {
  const int64_t count = is_x.numel();
  if (!AreTogether(is_x, at::kBool) || count == 0 || count > kMostNumbers) return {};
  const auto operand_of = [&](const at::Tensor& numbers) -> small_loops::Operand {
    if (!AreFloatsTogether(numbers)) return {};
    const bool is_number = numbers.dim() == 0;
    if (!is_number && numbers.sizes() != is_x.sizes()) return {};
    return {numbers.const_data_ptr<float>(), is_number && is_x.dim() != 0};
  };
  const small_loops::Operand first = operand_of(x), second = operand_of(y);
  if (first.data == nullptr || second.data == nullptr || (first.is_number && second.is_number))
    return {};
  at::Tensor result(at::detail::empty_cpu(is_x.sizes(), at::kFloat));
  small_loops::Choose(BytesOf(is_x), first, second, result.mutable_data_ptr<float>(), count);
  return result;
}

at::Tensor KeepAboveOnHost(const at::Tensor& values, const at::Tensor& x, const at::Scalar& limit) {
  const bool fits = AreFloatsTogether(values) && AreFloatsTogether(x) &&
                    values.sizes() == x.sizes() && x.numel() > 0 && x.numel() <= kMostNumbers;
  const std::optional<float> least = FloatOf(limit);
  if (!fits || !least) return {};
  at::Tensor result(at::detail::empty_cpu(x.sizes(), at::kFloat));
  small_loops::KeepAbove(values.const_data_ptr<float>(), x.const_data_ptr<float>(), *least,
                         result.mutable_data_ptr<float>(), x.numel());
  return result;
}
void RunSmallBy(lazy::OperationKind& kind, small_loops::UnaryLoop loop) {
  kind.eager_form = new SmallUnary(kind.eager_form, loop);  // kinds live for ever
}
void RunSmallBy(lazy::OperationKind& kind, small_loops::BinaryLoop loop) {
  kind.eager_form = new SmallBinary(kind.eager_form, loop);
}

}  // namespace torch_xla
