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

bool AreFloatsTogether(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat && x.is_contiguous() && !x.is_neg();
}

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

at::Tensor NewResult(const lazy::Operation& operation) {
  return at::Tensor(at::detail::empty_cpu(operation.result_shape(0)->dimensions(), at::kFloat));
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

class SmallBinary final : public lazy::EagerForm {
 public:
  SmallBinary(const lazy::EagerForm* form, small_loops::BinaryLoop loop)
      : form_(form), loop_(loop) {}

  std::vector<at::Tensor> Run(const lazy::Operation& operation,
                              std::span<const at::Tensor> operands) const override {
    const int64_t count = FewFloatsOf(operation);
    const SmallOperand x(operands[0], count), y(operands[1], count);
    const bool is_small = x.fits() && y.fits() && !(x.operand().is_number && y.operand().is_number);
    if (!is_small) return form_->Run(operation, operands);
    at::Tensor result = NewResult(operation);
    loop_(x.operand(), y.operand(), result.mutable_data_ptr<float>(), count);
    return eager::AsList(std::move(result));
  }

 private:
  const lazy::EagerForm* const form_;
  const small_loops::BinaryLoop loop_;
};

}  // namespace

void RunSmallBy(lazy::OperationKind& kind, small_loops::UnaryLoop loop) {
  kind.eager_form = new SmallUnary(kind.eager_form, loop);  // kinds live for ever
}
void RunSmallBy(lazy::OperationKind& kind, small_loops::BinaryLoop loop) {
  kind.eager_form = new SmallBinary(kind.eager_form, loop);
}

}  // namespace torch_xla
