// In-place view operators (`squeeze_`, `t_`, …): the tensor becomes a view of what it was; nothing
// is written.
//
// A view's function (view_functions.h) must know what has changed its shape: the view, or the base
// since the view was made.
#include "aten/in_place_views.h"

#include <ATen/ATen.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "aten/tensor.h"
#include "aten/view_functions.h"
#include "process/fork.h"

namespace torch_xla {
namespace {

using torch::autograd::ViewFunc;

constexpr const char* kUnknown =
    "the gradient of a view is not known once the shape of it or of its base has changed like this "
    "in place";

struct Change {
  Layout from, to;
};

// `x`, whose dimensions are those of `change.from`, with those of `change.to`: permuted, and with
// more or fewer dimensions of one element.
at::Tensor Apply(const std::optional<Change>& change, const at::Tensor& x) {
  if (!change || change->from == change->to) return x;
  const auto& [from, to] = *change;
  const size_t rank = from.sizes.size();
  std::vector<int64_t> order;
  std::vector<bool> taken(rank);
  const auto take = [&](auto is_wanted) {
    for (size_t i = 0; i < rank; ++i) {
      if (taken[i] || !is_wanted(i)) continue;
      taken[i] = true;
      order.push_back(static_cast<int64_t>(i));
      return true;
    }
    return false;
  };
  bool is_known = x.sizes() == from.sizes;
  for (size_t d = 0; d < to.sizes.size(); ++d) {
    is_known =
        is_known && (to.sizes[d] == 1 || take([&](size_t i) {
                       return from.sizes[i] == to.sizes[d] && from.strides[i] == to.strides[d];
                     }));
  }
  while (take([&](size_t i) { return from.sizes[i] == 1; })) {
  }
  TORCH_CHECK(is_known && order.size() == rank, kUnknown);
  return x.permute(order).view(to.sizes);
}

// What a view does to its base, where the shape of either has changed.
class ChangedView final : public ViewFunc {
 public:
  // A null `view` is one that nobody knows.
  ChangedView(std::unique_ptr<ViewFunc> view, std::optional<Change> of_base,
              std::optional<Change> of_view)
      : view_(std::move(view)), of_base_(std::move(of_base)), of_view_(std::move(of_view)) {}

  // The same view, to be changed more.
  static std::unique_ptr<ChangedView> From(const ViewFunc& view) {
    if (const auto* changed = dynamic_cast<const ChangedView*>(&view)) return changed->Clone();
    return std::make_unique<ChangedView>(view.clone_and_set(), std::nullopt, std::nullopt);
  }
  void ChangeBase(Change change) { of_base_ = std::move(change); }
  void ChangeView(Change change) {
    if (of_view_) change.from = std::move(of_view_->from);
    of_view_ = std::move(change);
  }

  at::Tensor operator()(const at::Tensor& base) const override {
    TORCH_CHECK(view_ != nullptr, kUnknown);
    return Apply(of_view_, (*view_)(Apply(of_base_, base)));
  }
  std::unique_ptr<ViewFunc> clone_and_set(
      std::optional<std::vector<c10::SymInt>> = std::nullopt,
      std::optional<std::vector<at::Tensor>> = std::nullopt) const override {
    return Clone();
  }

 private:
  std::unique_ptr<ChangedView> Clone() const {
    return std::make_unique<ChangedView>(view_ ? view_->clone_and_set() : nullptr, of_base_,
                                         of_view_);
  }

  std::unique_ptr<ViewFunc> view_;
  std::optional<Change> of_base_, of_view_;
};

// The layouts that tensors have had, which may be bases of views.
class PastLayouts {
 public:
  // Gradients of views that are older than this many other layouts of their base are not known.
  static constexpr size_t kMostLayouts = 16;

  void Add(const at::TensorBase& base, Layout layout) {
    std::lock_guard lock(mutex_);
    if (past_.size() >= limit_) {
      std::erase_if(past_, [](const auto& entry) { return entry.second.base.expired(); });
      limit_ = std::max<size_t>(64, 2 * past_.size());
    }
    auto [entry, is_new] = past_.try_emplace(base.unsafeGetTensorImpl(), base);
    auto& layouts = entry->second.layouts;
    if (std::ranges::find(layouts, layout) == layouts.end()) layouts.push_back(std::move(layout));
    if (layouts.size() > kMostLayouts) layouts.erase(layouts.begin());
    is_empty_ = false;
  }
  std::vector<Layout> Of(const at::TensorBase& base) {
    if (is_empty_) return {};
    std::lock_guard lock(mutex_);
    const auto entry = past_.find(base.unsafeGetTensorImpl());
    return entry == past_.end() ? std::vector<Layout>() : entry->second.layouts;
  }

 private:
  struct Entry {
    explicit Entry(const at::TensorBase& base) : base(base.getIntrusivePtr()) {}
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> base;
    std::vector<Layout> layouts;
  };
  std::atomic<bool> is_empty_{true};
  process::Mutex mutex_;
  // While an entry is there, no other tensor has its address.
  std::unordered_map<c10::TensorImpl*, Entry> past_;
  size_t limit_ = 64;
};

PastLayouts& Past() {
  static auto* past = new PastLayouts;
  return *past;
}

at::Tensor& Become(at::Tensor& self, const at::Tensor& view) {
  Change change{LayoutOf(self), LayoutOf(view)};
  CheckedImpl(self)->ShareStorage(*CheckedImpl(view));
  if (auto* meta = MetaOf(self)) {
    auto changed = ChangedView::From(*FunctionOf(*meta));
    changed->ChangeView(std::move(change));
    FunctionOf(*meta) = std::move(changed);
  } else {
    Past().Add(self, std::move(change.from));
  }
  return self;
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("squeeze_",
         [](at::Tensor& self) -> at::Tensor& { return Become(self, at::squeeze(self)); });
  m.impl("squeeze_.dim", [](at::Tensor& self, int64_t dim) -> at::Tensor& {
    return Become(self, at::squeeze(self, dim));
  });
  m.impl("squeeze_.dims", [](at::Tensor& self, at::IntArrayRef dims) -> at::Tensor& {
    return Become(self, at::squeeze(self, dims));
  });
  m.impl("unsqueeze_", [](at::Tensor& self, int64_t dim) -> at::Tensor& {
    return Become(self, at::unsqueeze(self, dim));
  });
  m.impl("transpose_", [](at::Tensor& self, int64_t dim0, int64_t dim1) -> at::Tensor& {
    return Become(self, at::transpose(self, dim0, dim1));
  });
  m.impl("t_", [](at::Tensor& self) -> at::Tensor& { return Become(self, at::t(self)); });
  m.impl("as_strided_",
         [](const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
            std::optional<c10::SymInt> offset) -> const at::Tensor& {
           at::Tensor same = self;
           Become(same, at::as_strided_symint(self, size, stride, offset));
           return self;
         });
}

}  // namespace

void FollowBase(const at::TensorBase& view) {
  auto* meta = MetaOf(view);
  if (meta == nullptr) return;
  const at::Tensor& base = meta->get_backward_view().base_;
  if (IsTracedOnly(base)) return;  // no view of it is ours
  const std::vector<Layout> past = Past().Of(base);
  if (past.empty()) return;
  std::lock_guard lock(meta->mutex_);
  auto& function = FunctionOf(*meta);
  if (Finds(*function, base, view)) return;
  auto changed = ChangedView::From(*function);
  for (const Layout& layout : past) {
    changed->ChangeBase({LayoutOf(base), layout});
    if (!Finds(*changed, base, view)) continue;
    function = std::move(changed);
    return;
  }
  function = std::make_unique<ChangedView>(nullptr, std::nullopt, std::nullopt);
}

}  // namespace torch_xla
