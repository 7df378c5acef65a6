// How torch computes what views read and write (lazy/view.h).
#include "aten/view_forms.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorUtils.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>

#include <utility>

#include "aten/host_tensor.h"
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

// Where in its base's memory a view has its elements: found step by step without a tensor for each.
struct PlaceInMemory {
  at::DimVector sizes, strides;
  int64_t offset = 0;

  static PlaceInMemory Of(const at::Tensor& x) {
    return {at::DimVector(x.sizes()), at::DimVector(x.strides()), x.storage_offset()};
  }
  at::Tensor In(const at::Tensor& x) const {
    return at::cpu::as_strided(x, sizes, strides, offset);
  }

  // False if the elements do not lie so that they can be seen in these dimensions.
  bool Reshape(at::IntArrayRef dimensions) {
    at::DimVector wanted(dimensions);
    auto found = at::detail::computeStride(sizes, strides, wanted);
    if (!found) return false;
    sizes = std::move(wanted);
    strides = *std::move(found);
    return true;
  }
  void Permute(at::IntArrayRef order) {
    const at::DimVector from_sizes = sizes, from_strides = strides;
    for (size_t i = 0; i < order.size(); ++i) {
      sizes[i] = from_sizes[order[i]];
      strides[i] = from_strides[order[i]];
    }
  }
  void Slice(const ViewStep& step, int64_t start) {
    const int64_t d = step.dimension, count = step.size;
    const int64_t last = start + (count - 1) * step.stride;
    TORCH_CHECK(count == 0 || (start >= 0 && last < sizes[d]), "a slice out of bounds");
    offset += count == 0 ? 0 : start * strides[d];
    sizes[d] = count;
    strides[d] *= step.stride;
  }
  void Expand(at::IntArrayRef dimensions) {
    auto expanded = at::inferExpandGeometry_dimvector(sizes, strides, dimensions);
    sizes = std::move(expanded.sizes);
    strides = std::move(expanded.strides);
  }
};

// Where a slice ends, for torch: not beyond its last element.
int64_t EndOf(const ViewStep& step) {
  return step.size == 0 ? step.start : step.start + (step.size - 1) * step.stride + 1;
}

// What the steps show of `x`. `alias`: as its memory; throws where that is not possible.
at::Tensor ShowSteps(at::Tensor x, at::IntArrayRef starts, const lazy::ViewChain& chain,
                     bool alias) {
  size_t next = 0;
  PlaceInMemory place = PlaceInMemory::Of(x);
  for (const ViewStep& step : chain) {
    const int64_t start = step.has_start() ? starts[next++] : 0;
    switch (step.kind) {
      case ViewStep::Kind::kReshape:
        if (place.Reshape(step.sizes)) continue;
        TORCH_CHECK(!alias, "elements that do not lie together");
        x = place.In(x).reshape(step.sizes);
        break;
      case ViewStep::Kind::kPermute:
        place.Permute(step.sizes);
        continue;
      case ViewStep::Kind::kSlice:
        place.Slice(step, start);
        continue;
      case ViewStep::Kind::kExpand:
        place.Expand(step.sizes);
        continue;
      case ViewStep::Kind::kBitcast:
        x = place.In(x);
        TORCH_CHECK(!alias || x.is_contiguous(), "bytes that do not lie together");
        x = ShowBitcast(x, step);
        break;
      case ViewStep::Kind::kAsStrided:
        x = place.In(x);
        TORCH_CHECK(!alias || x.is_contiguous(), "elements that do not lie together");
        x = x.contiguous();
        x = x.as_strided(step.sizes, step.strides, x.storage_offset() + start);
        break;
    }
    place = PlaceInMemory::Of(x);
  }
  return place.In(x);
}

at::Tensor ReadView(const at::Tensor& base, at::IntArrayRef starts, const lazy::ViewChain& chain) {
  return ShowSteps(base, starts, chain, /*alias=*/false);
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

// By operators, each of which has a derivative.
at::Tensor ShowAgain(at::Tensor x, const lazy::ViewChain& chain) {
  if (chain.empty()) return x.alias();
  for (const ViewStep& step : chain) {
    switch (step.kind) {
      case ViewStep::Kind::kReshape:
        x = x.view(step.sizes);
        break;
      case ViewStep::Kind::kPermute:
        x = x.permute(step.sizes);
        break;
      case ViewStep::Kind::kSlice:
        x = x.slice(step.dimension, step.start, EndOf(step), step.stride);
        break;
      case ViewStep::Kind::kExpand:
        x = x.expand(step.sizes);
        break;
      case ViewStep::Kind::kAsStrided:
        TORCH_CHECK(x.is_contiguous(), "elements that do not lie together");
        x = x.as_strided(step.sizes, step.strides, x.storage_offset() + step.start);
        break;
      case ViewStep::Kind::kBitcast:
        TORCH_CHECK_NOT_IMPLEMENTED(false, "a view has no derivative by ", step.ToString());
    }
  }
  return x;
}

}  // namespace torch_xla
