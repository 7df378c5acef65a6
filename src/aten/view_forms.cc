// How torch computes what views read and write (lazy/view.h).
#include "aten/view_forms.h"

#include "aten/op.h"

namespace torch_xla {
namespace {

using lazy::ViewStep;

// As sizes of the other type's elements: the last dimension shrinks or grows, and `sizes` says how.
at::Tensor ShowBitcast(const at::Tensor& x, const ViewStep& step) {
  const at::Tensor elements = x.contiguous();
  const at::Tensor row = x.dim() == 0 ? elements.view(1) : elements;  // torch wants a dimension
  return row.view(ToScalarType(step.type)).view(step.sizes);
}

at::Tensor ShowSlice(const at::Tensor& x, const ViewStep& step, int64_t start) {
  const int64_t end = step.size == 0 ? start : start + (step.size - 1) * step.stride + 1;
  return x.slice(step.dimension, start, end, step.stride);
}

// What the steps show of `x`. `alias`: as its memory; throws where that is not possible.
at::Tensor ShowSteps(at::Tensor x, at::IntArrayRef starts, const lazy::ViewChain& chain,
                     bool alias) {
  size_t next = 0;
  for (const ViewStep& step : chain) {
    const int64_t start = step.has_start() ? starts[next++] : 0;
    switch (step.kind) {
      case ViewStep::Kind::kReshape:
        x = alias ? x.view(step.sizes) : x.reshape(step.sizes);
        break;
      case ViewStep::Kind::kPermute:
        x = x.permute(step.sizes);
        break;
      case ViewStep::Kind::kSlice:
        x = ShowSlice(x, step, start);
        break;
      case ViewStep::Kind::kExpand:
        x = x.expand(step.sizes);
        break;
      case ViewStep::Kind::kBitcast:
        TORCH_CHECK(!alias || x.is_contiguous(), "bytes that do not lie together");
        x = ShowBitcast(x, step);
        break;
      case ViewStep::Kind::kAsStrided:
        TORCH_CHECK(!alias || x.is_contiguous(), "elements that do not lie together");
        x = x.contiguous();
        x = x.as_strided(step.sizes, step.strides, x.storage_offset() + start);
        break;
    }
  }
  return x;
}

at::Tensor ReadView(const at::Tensor& base, at::IntArrayRef starts, const lazy::ViewChain& chain) {
  return ShowSteps(base, starts, chain, /*alias=*/false);
}

// A value that nobody else holds but the list of operands is written in place.
at::Tensor Writable(const at::Tensor& x) {
  constexpr size_t kHolders = 2;  // the list, and the argument
  const bool is_own = x.use_count() <= kHolders && x.storage().use_count() == 1;
  return is_own && x.is_contiguous() ? x : x.clone(at::MemoryFormat::Contiguous);
}

at::Tensor WriteView(const at::Tensor& base, const at::Tensor& part, at::IntArrayRef starts,
                     const lazy::ViewChain& chain) {
  at::Tensor written = Writable(base);
  ShowSteps(written, starts, chain, /*alias=*/true).copy_(part);
  return written;
}

[[maybe_unused]] const bool views_have_forms = [] {
  RunBy<&lazy::ReadView>(&ReadView);
  RunBy<&lazy::WriteView>(&WriteView);
  return true;
}();

}  // namespace

at::Tensor ShowAgain(const at::Tensor& base, const lazy::ViewChain& chain) {
  if (chain.empty()) return base.alias();
  std::vector<int64_t> starts;
  for (const ViewStep& step : chain) {
    if (step.has_start()) starts.push_back(step.start);
  }
  return ShowSteps(base, starts, chain, /*alias=*/true);
}

}  // namespace torch_xla
