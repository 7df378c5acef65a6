// Views of views of views. torch gives each the functions of all before it, copied anew, so that n
// views cost n squared, and a call of them nests n deep. After some of them a view is found by its
// strides instead.
#include "aten/views_of_views.h"

#include <ATen/ops/as_strided.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include "aten/tensor.h"
#include "aten/view_functions.h"

namespace torch_xla {
namespace {

using torch::autograd::DifferentiableViewMeta;
using torch::autograd::ViewFunc;

// What a view of a view is made anew by. Slices stay slices up to here, which are quicker to write
// into than what strides say.
constexpr int kMostViews = 16;

using SavedSizes = std::optional<std::vector<c10::SymInt>>;
using SavedTensors = std::optional<std::vector<at::Tensor>>;

// A function that knows of how many views it is.
class CountedViews final : public ViewFunc {
 public:
  CountedViews(std::unique_ptr<ViewFunc> views, int count)
      : views_(std::move(views)), count_(count) {}

  int count() const { return count_; }

  std::vector<c10::SymInt> get_symints() const override { return views_->get_symints(); }
  size_t num_symints() const override { return views_->num_symints(); }
  std::vector<at::Tensor> get_tensors() const override { return views_->get_tensors(); }
  size_t num_tensors() const override { return views_->num_tensors(); }
  at::Tensor operator()(const at::Tensor& base) const override { return (*views_)(base); }
  std::unique_ptr<ViewFunc> clone_and_set(SavedSizes symints = std::nullopt,
                                          SavedTensors tensors = std::nullopt) const override {
    return std::make_unique<CountedViews>(
        views_->clone_and_set(std::move(symints), std::move(tensors)), count_);
  }

 private:
  std::unique_ptr<ViewFunc> views_;
  int count_;
};

// A tensor that lies in another one's memory, whose gradient lies in memory of its own: the offset
// is counted from where the other one begins.
class RelativePlace {
 public:
  RelativePlace(const at::TensorBase& tensor, const at::TensorBase& other)
      : layout_(LayoutOf(tensor)), offset_(tensor.storage_offset() - other.storage_offset()) {}

  at::Tensor operator()(const at::Tensor& other) const {
    return other.as_strided(layout_.sizes, layout_.strides, other.storage_offset() + offset_);
  }

 private:
  Layout layout_;
  int64_t offset_;
};

// Where a view lies in its base's memory.
class StridedView final : public ViewFunc {
 public:
  explicit StridedView(RelativePlace place) : place_(std::move(place)) {}

  at::Tensor operator()(const at::Tensor& base) const override { return place_(base); }
  std::unique_ptr<ViewFunc> clone_and_set(SavedSizes = std::nullopt,
                                          SavedTensors = std::nullopt) const override {
    return std::make_unique<StridedView>(*this);
  }

 private:
  RelativePlace place_;
};

constexpr const char* kChainedViewFunc = "N5torch8autograd15ChainedViewFuncE";

// Of how many views the function is; of one that others have made it is not known.
int CountOf(const ViewFunc& function) {
  if (const auto* counted = dynamic_cast<const CountedViews*>(&function)) return counted->count();
  // torch exports no type information of its chains; the name is the same in all its libraries.
  const bool is_chain = typeid(function).name() == std::string_view(kChainedViewFunc);
  return is_chain ? kMostViews : 1;
}

// Another type of the same bytes, and what is only a flag, strides do not tell.
bool IsByStrides(const at::Tensor& view, const at::Tensor& base) {
  return IsXla(base) && Impl(base)->xla_storage() == Impl(view)->xla_storage() &&
         base.scalar_type() == view.scalar_type() && base.is_conj() == view.is_conj() &&
         base.is_neg() == view.is_neg();
}

// Whether the view is found by its strides from here on.
bool FindByStrides(const at::Tensor& view, DifferentiableViewMeta& meta) {
  const torch::autograd::ViewInfo& info = meta.get_backward_view();
  const at::Tensor& base = info.base_;
  if (!IsByStrides(view, base)) return false;
  auto strided = std::make_unique<StridedView>(RelativePlace(view, base));
  if (!Finds(*strided, base, view)) return false;
  FunctionOf(meta) = std::move(strided);
  const_cast<std::function<at::Tensor(const at::Tensor&)>&>(info.rev_view_fn_) =
      RelativePlace(base, view);
  return true;
}

}  // namespace

void BoundViews(const at::Tensor& self, const at::Tensor& view) {
  DifferentiableViewMeta* const meta_of_self = MetaOf(self);
  if (meta_of_self == nullptr || !IsXla(view)) return;
  DifferentiableViewMeta* const meta = MetaOf(view);
  if (meta == nullptr) return;
  const int count = CountOf(*FunctionOf(*meta_of_self)) + 1;
  if (count > kMostViews && FindByStrides(view, *meta)) return;
  std::unique_ptr<ViewFunc>& function = FunctionOf(*meta);
  function = std::make_unique<CountedViews>(std::move(function), count);
}

}  // namespace torch_xla
