#include "aten/small_forms.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>

#include <span>
#include <utility>
#include <vector>

#include "aten/eager_form.h"

namespace torch_xla {
namespace {

// Beyond, the wider vectors of torch's kernels are worth their preparation.
constexpr int64_t kMostNumbers = 4096;

bool AreTogether(const at::Tensor& x, at::ScalarType type) {
  return x.scalar_type() == type && x.is_contiguous() && !x.is_neg();
}
bool AreFloatsTogether(const at::Tensor& x) { return AreTogether(x, at::kFloat); }

// One operand of a loop over `count` numbers.
class SmallOperand {
 public:
  SmallOperand(const at::Tensor& x, int64_t count) {
    if (x.numel() == count) {
      if (AreFloatsTogether(x)) operand_.data = x.const_data_ptr<float>();
    } else if (x.numel() == 1 && !x.is_neg()) {
      operand_.is_number = true;
      if (ReadNumber(x)) operand_.data = &number_;
    }
  }
  SmallOperand(const SmallOperand&) = delete;
  bool fits() const { return operand_.data != nullptr; }
  const small_loops::Operand& operand() const { return operand_; }

 private:
  // Where the result is of float32, numbers of these types are converted to it; a float64 that has
  // dimensions is not, but what is computed with it.
  bool ReadNumber(const at::Tensor& x) {
    switch (x.scalar_type()) {
      case at::kFloat:
        number_ = *x.const_data_ptr<float>();
        return true;
      case at::kDouble:
        if (x.dim() != 0) return false;
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
    if (x.numel() != count || !AreFloatsTogether(x)) return form_->Run(operation, operands);
    at::Tensor result = NewResult(operation);
    loop_(x.const_data_ptr<float>(), result.mutable_data_ptr<float>(), count);
    return eager::AsList(std::move(result));
  }

 private:
  const lazy::EagerForm* const form_;
  const small_loops::UnaryLoop loop_;
};

// One float32 number for each row of a matrix: a column, or what it stretches to.
struct NumbersOfRows {
  const float* data = nullptr;
  int64_t step = 0;

  // Empty if `x` is none beside a result of these dimensions.
  static NumbersOfRows Of(const at::Tensor& x, const hlo::Dimensions& dimensions) {
    const bool fits = dimensions.size() == 2 && x.dim() == 2 && x.scalar_type() == at::kFloat &&
                      !x.is_neg() && x.size(0) == dimensions[0] &&
                      (x.size(1) == 1 || (x.size(1) == dimensions[1] && x.stride(1) == 0));
    return fits ? NumbersOfRows{x.const_data_ptr<float>(), x.stride(0)} : NumbersOfRows();
  }
  small_loops::Operand InRow(int64_t row) const { return {data + row * step, true}; }
};

class SmallBinary final : public lazy::EagerForm {
 public:
  SmallBinary(const lazy::EagerForm* form, small_loops::BinaryLoop loop)
      : form_(form), loop_(loop) {}

  std::vector<at::Tensor> Run(const lazy::Operation& operation,
                              std::span<const at::Tensor> operands) const override {
    const int64_t count = FewFloatsOf(operation);
    const SmallOperand x(operands[0], count), y(operands[1], count);
    const bool is_small = x.fits() && y.fits() && !(x.operand().is_number && y.operand().is_number);
    if (!is_small) return RunByRows(operation, operands, count);
    at::Tensor result = NewResult(operation);
    loop_(x.operand(), y.operand(), result.mutable_data_ptr<float>(), count);
    return eager::AsList(std::move(result));
  }

 private:
  // A matrix and a column, in either order.
  std::vector<at::Tensor> RunByRows(const lazy::Operation& operation,
                                    std::span<const at::Tensor> operands, int64_t count) const {
    const size_t matrix = AreFloatsTogether(operands[0]) && operands[0].numel() == count ? 0 : 1;
    const at::Tensor& x = operands[matrix];
    if (count <= 0 || x.numel() != count || !AreFloatsTogether(x))
      return form_->Run(operation, operands);
    const hlo::Dimensions& dimensions = operation.result_shape(0)->dimensions();
    const NumbersOfRows column = NumbersOfRows::Of(operands[1 - matrix], dimensions);
    if (column.data == nullptr || x.dim() != 2) return form_->Run(operation, operands);
    at::Tensor result = NewResult(operation);
    auto* to = result.mutable_data_ptr<float>();
    const auto* from = x.const_data_ptr<float>();
    const int64_t width = dimensions[1];
    for (int64_t row = 0; row < dimensions[0]; ++row, from += width, to += width) {
      const small_loops::Operand of_matrix{from, false}, number = column.InRow(row);
      matrix == 0 ? loop_(of_matrix, number, to, width) : loop_(number, of_matrix, to, width);
    }
    return eager::AsList(std::move(result));
  }

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

class SmallOfBools final : public lazy::EagerForm {
 public:
  SmallOfBools(const lazy::EagerForm* form, small_loops::BoolLoop loop)
      : form_(form), loop_(loop) {}

  std::vector<at::Tensor> Run(const lazy::Operation& operation,
                              std::span<const at::Tensor> operands) const override {
    const int64_t count = FewBoolsOf(operation);
    for (const at::Tensor& x : operands) {
      const bool fits = x.numel() == count && AreTogether(x, at::kBool);
      if (!fits) return form_->Run(operation, operands);
    }
    const auto* x = static_cast<const uint8_t*>(operands[0].const_data_ptr());
    const auto* y = static_cast<const uint8_t*>(operands[1].const_data_ptr());
    at::Tensor result = NewResult(operation, at::kBool);
    loop_(x, y, result.mutable_data_ptr<bool>(), count);
    return eager::AsList(std::move(result));
  }

 private:
  const lazy::EagerForm* const form_;
  const small_loops::BoolLoop loop_;
};

}  // namespace

void RunSmallBy(lazy::OperationKind& kind, const small_loops::CompareLoops& loops) {
  kind.eager_form = new SmallComparison(kind.eager_form, loops);  // kinds live for ever
}
void RunSmallBoolsBy(lazy::OperationKind& kind, small_loops::BoolLoop loop) {
  kind.eager_form = new SmallOfBools(kind.eager_form, loop);
}
void RunSmallBy(lazy::OperationKind& kind, small_loops::UnaryLoop loop) {
  kind.eager_form = new SmallUnary(kind.eager_form, loop);  // kinds live for ever
}
void RunSmallBy(lazy::OperationKind& kind, small_loops::BinaryLoop loop) {
  kind.eager_form = new SmallBinary(kind.eager_form, loop);
}

}  // namespace torch_xla
