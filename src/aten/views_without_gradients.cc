// Views where nobody asks for a gradient. Torch keeps with each view of this device how to make it
// again from its base: gradients of what is written into the view later ask for that. The function
// it makes for that costs more than the view itself, while the view has its steps in it already.
// So torch's kernels are left out, and the steps are the function.
#include <ATen/Operators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "aten/tensor.h"
#include "aten/view_forms.h"
#include "aten/views_of_views.h"
#include "aten/without_gradients.h"

namespace torch_xla {
namespace {

using lazy::ViewStep;
using torch::autograd::CreationMeta;
using torch::autograd::ViewFunc;
using torch::autograd::ViewInfo;
using without_gradients::kTorchs;
using without_gradients::TakesPart;

// Steps from a base. Graphs of gradients keep these, and no storage with them.
class Steps final : public ViewFunc {
 public:
  explicit Steps(lazy::ViewChain chain) : chain_(std::move(chain)) {}
  at::Tensor operator()(const at::Tensor& base) const override { return ShowAgain(base, chain_); }
  std::unique_ptr<ViewFunc> clone_and_set(
      std::optional<std::vector<c10::SymInt>> = std::nullopt,
      std::optional<std::vector<at::Tensor>> = std::nullopt) const override {
    return std::make_unique<Steps>(chain_);
  }

 private:
  lazy::ViewChain chain_;
};

// The steps of a view from its whole storage, which the base is all of.
class StepsOfView final : public ViewFunc {
 public:
  explicit StepsOfView(lazy::Reference<lazy::View> view) : view_(std::move(view)) {}
  at::Tensor operator()(const at::Tensor& base) const override {
    return ShowAgain(base, view_->chain());
  }
  std::unique_ptr<ViewFunc> clone_and_set(
      std::optional<std::vector<c10::SymInt>> = std::nullopt,
      std::optional<std::vector<at::Tensor>> = std::nullopt) const override {
    return std::make_unique<Steps>(view_->chain());
  }

 private:
  lazy::Reference<lazy::View> view_;
};

at::Tensor NoWayBack(const at::Tensor&) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "the base of a view is not made again from the view");
}

bool HasDerivatives(const ViewStep& step) {
  return step.kind != ViewStep::Kind::kBitcast && step.kind != ViewStep::Kind::kAsStrided;
}

// The base of views of `self`; null unless it is all of the storage, and what leads from there to
// `self` has derivatives.
const at::Tensor* WholeBase(const at::Tensor& self,
                            const torch::autograd::DifferentiableViewMeta* meta) {
  const XlaTensor impl = Impl(self);
  if (meta == nullptr) return impl->view() ? nullptr : &self;
  if (!meta->shared_view_info()) return nullptr;
  const at::Tensor& base = meta->get_backward_view().base_;
  if (!IsXla(base) || Impl(base)->view()) return nullptr;
  // Flags are no steps. Their keys fall through for views, so that no key tells of them.
  if (self.is_conj() != base.is_conj() || self.is_neg() != base.is_neg()) return nullptr;
  if (Impl(base)->xla_storage() != impl->xla_storage()) return nullptr;
  if (!impl->view()) return &base;
  return std::ranges::all_of(impl->view()->chain(), &HasDerivatives) ? &base : nullptr;
}

// Tells torch what `view`, new and of a storage that `base` is all of, is a view of.
void MarkAsView(const at::Tensor& view, const at::Tensor& base,
                const torch::autograd::DifferentiableViewMeta* meta) {
  CreationMeta creation =
      c10::GradMode::is_enabled() ? CreationMeta::DEFAULT : CreationMeta::NO_GRAD_MODE;
  if (meta != nullptr) {
    creation = torch::autograd::propagate_creation_meta(meta->get_creation_meta(), creation);
  }
  std::unique_ptr<ViewFunc> steps;
  if (const auto& of_view = Impl(view)->view()) {
    steps = std::make_unique<StepsOfView>(of_view);
  } else {
    steps = std::make_unique<Steps>(lazy::ViewChain());
  }
  torch::autograd::make_variable_differentiable_view(
      view, ViewInfo(base, std::move(steps), &NoWayBack), std::nullopt, /*shared_view_info=*/true,
      creation);
}

template <typename Op, typename Schema = typename Op::schema>
struct TorchsView;

template <typename Op, typename... Arguments>
struct TorchsView<Op, at::Tensor(const at::Tensor&, Arguments...)> {
  static at::Tensor Call(c10::DispatchKeySet keys, const at::Tensor& self, Arguments... arguments) {
    const c10::DispatchKeySet below = keys & c10::after_autograd_keyset;
    at::Tensor view;
    if (TakesPart(c10::GradMode::is_enabled(), self)) {
      view = Op::redispatch(below.add(kTorchs), self, arguments...);
    } else {
      const at::AutoDispatchBelowAutograd guard;
      view = Op::redispatch(below, self, arguments...);
    }
    BoundViews(self, view);
    return view;
  }
};

template <typename Op, typename Schema = typename Op::schema>
struct ViewWithoutGradients;

template <typename Op, typename... Arguments>
struct ViewWithoutGradients<Op, at::Tensor(const at::Tensor&, Arguments...)> {
  static at::Tensor Call(c10::DispatchKeySet keys, const at::Tensor& self, Arguments... arguments) {
    const c10::DispatchKeySet below = keys & c10::after_ADInplaceOrView_keyset;
    const bool is_seen_by_others = below.highestPriorityTypeId() != c10::DispatchKey::XLA;
    if (is_seen_by_others || !IsXla(self) || TakesPart(c10::GradMode::is_enabled(), self)) {
      return TorchsView<Op>::Call(keys, self, arguments...);
    }
    const auto* meta = torch::autograd::impl::get_view_autograd_meta(self);
    const at::Tensor* base = WholeBase(self, meta);
    if (base == nullptr) return TorchsView<Op>::Call(keys, self, arguments...);
    at::Tensor view = [&] {
      at::AutoDispatchBelowADInplaceOrView guard;
      return Op::redispatch(below, self, arguments...);
    }();
    MarkAsView(view, *base, meta);
    return view;
  }
};

template <template <typename...> typename Kernel, typename... Op>
void RegisterViews(torch::Library& m) {
  (m.impl(without_gradients::NameOf<Op>().c_str(), TORCH_FN((&Kernel<Op>::Call))), ...);
}

namespace ops = at::_ops;

TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) {
  RegisterViews<ViewWithoutGradients, ops::view, ops::_reshape_alias, ops::permute,
                ops::transpose_int, ops::t, ops::expand, ops::squeeze, ops::squeeze_dim,
                ops::squeeze_dims, ops::unsqueeze, ops::slice_Tensor, ops::select_int>(m);
  RegisterViews<TorchsView, ops::as_strided, ops::diagonal, ops::unfold, ops::alias>(m);
}

}  // namespace
}  // namespace torch_xla
