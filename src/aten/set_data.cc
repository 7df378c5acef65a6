// LibTorch and Python move a module by set_data, and so keep the variables with all that others
// know of them: an optimizer, hooks, module members. torch itself allows it only between
// implementations of one class.
#include "aten/set_data.h"

#include <ATen/core/VariableHooksInterface.h>
#include <torch/csrc/autograd/variable.h>

#include <typeinfo>
#include <utility>

#include "aten/in_place_views.h"
#include "aten/tensor.h"

namespace torch_xla {
namespace {

using at::TensorBase;

bool IsOfTorch(const TensorBase& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  return typeid(impl) == typeid(c10::TensorImpl);  // adopted or not
}

// A dense tensor of torch's own class or of ours.
bool IsPlain(const TensorBase& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  return (IsOfTorch(tensor) || typeid(impl) == typeid(XlaTensorImpl)) &&
         tensor.layout() == at::kStrided && (IsXla(tensor) || tensor.device().is_cpu());
}

// The accumulator was made for a gradient of the old type and device.
void ResetGradientAccumulator(const TensorBase& variable, const TensorBase& data) {
  torch::autograd::AutogradMeta* meta = torch::autograd::impl::get_autograd_meta(variable);
  if (meta == nullptr) return;
  std::lock_guard lock(meta->mutex_);
  if (variable.device() != data.device() || variable.dtype() != data.dtype()) {
    meta->grad_accumulator_.reset();
  }
}

// torch's own hooks, but for set_data and what precedes grad_fn.
class VariableHooks final : public at::impl::VariableHooksInterface {
 public:
  explicit VariableHooks(at::impl::VariableHooksInterface* next) : next_(next) {}

  void set_data(const TensorBase& variable, const TensorBase& data) const override {
    if (!CanSetData(variable, data)) {
      next_->set_data(variable, data);
      return;
    }
    ResetGradientAccumulator(variable, data);
    c10::TensorImpl* target = variable.unsafeGetTensorImpl();
    if (!IsXla(data)) {
      XlaTensorImpl::Abandon(target, data);
    } else if (IsOfTorch(variable)) {
      XlaTensorImpl::Adopt(target, data);
    } else {
      target->shallow_copy_from(data.getIntrusivePtr());
    }
  }

  TensorBase tensor_data(const TensorBase& t) const override { return next_->tensor_data(t); }
  TensorBase variable_data(const TensorBase& t) const override { return next_->variable_data(t); }
  // A pointer of another kind in torch 2.11.
  using GradFn = decltype(std::declval<const at::impl::VariableHooksInterface&>().grad_fn(
      std::declval<const TensorBase&>()));
  GradFn grad_fn(const TensorBase& t) const override {
    FollowBase(t);
    return next_->grad_fn(t);
  }
  unsigned _register_hook(const TensorBase& t,
                          std::function<TensorBase(const TensorBase&)> hook) const override {
    return next_->_register_hook(t, std::move(hook));
  }
  void remove_hook(const TensorBase& t, unsigned pos) const override { next_->remove_hook(t, pos); }
  bool is_view(const TensorBase& t) const override { return next_->is_view(t); }
  const TensorBase& base(const TensorBase& t) const override { return next_->base(t); }
  const std::string& name(const TensorBase& t) const override { return next_->name(t); }
  bool is_leaf(const TensorBase& t) const override { return next_->is_leaf(t); }
  int64_t output_nr(const TensorBase& t) const override { return next_->output_nr(t); }
  TensorBase data(const TensorBase& t) const override { return next_->data(t); }
  int64_t _version(const TensorBase& t) const override { return next_->_version(t); }
  void retain_grad(const TensorBase& t) const override { next_->retain_grad(t); }
  bool retains_grad(const TensorBase& t) const override { return next_->retains_grad(t); }
  void _backward(const at::Tensor& t, at::TensorList inputs,
                 const std::optional<at::Tensor>& gradient, std::optional<bool> keep_graph,
                 bool create_graph) const override {
    next_->_backward(t, inputs, gradient, keep_graph, create_graph);
  }
  void requires_grad_(const TensorBase& t, bool value) const override {
    next_->requires_grad_(t, value);
  }
  void basic_autograd_not_implemented_fallback(const c10::OperatorHandle& op,
                                               c10::DispatchKeySet keys,
                                               torch::jit::Stack* stack) const override {
    next_->basic_autograd_not_implemented_fallback(op, keys, stack);
  }
  std::optional<c10::ScalarType> grad_dtype(const TensorBase& t) const override {
    return next_->grad_dtype(t);
  }
  void set_grad_dtype(const TensorBase& t,
                      const std::optional<c10::ScalarType>& type) const override {
    next_->set_grad_dtype(t, type);
  }

 private:
  at::impl::VariableHooksInterface* next_;
};

// Never destroyed: torch keeps the pointer.
const at::impl::VariableHooksRegisterer registerer(new VariableHooks(at::impl::GetVariableHooks()));

}  // namespace

bool CanSetData(const at::TensorBase& variable, const at::TensorBase& data) {
  return (IsXla(variable) || IsXla(data)) && IsPlain(variable) && IsPlain(data);
}

}  // namespace torch_xla
