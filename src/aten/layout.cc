#include "aten/layout.h"

#include <ATen/ExpandUtils.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "aten/tensor.h"

namespace torch_xla {
namespace {

using at::DimVector;
using at::IntArrayRef;
using at::MemoryFormat;

// How eager lays out the results of operators that are not element-wise here.
enum class LayoutRule : uint8_t {
  kElementwise,      // as those of element-wise ones
  kElementwiseNext,  // the same, where the second operand is asked first
  kPreserved,        // as the first operand
  kPreservedNext,    // as the second operand
  kSuggested,        // in the first operand's format
  kSuggestedAny,     // in channels_last if one of the first two operands is
  kSuggestedAll,     // in the operands' format if it is one
  kSuggestedNext,    // in the second operand's format: the first is a gradient
  kSuggestedLast,    // in channels_last if one of the two operands after the gradient is
  kVolume,           // in the first operand's format, which holds without the batch, too
  kVolumeNext,       // in the second operand's format; without a batch in that of the gradient
};

const std::unordered_map<std::string_view, LayoutRule>& LayoutRules() {
  static const auto* rules = new std::unordered_map<std::string_view, LayoutRule>{
      // Convolutions and what goes with them.
      {"_adaptive_avg_pool2d", LayoutRule::kSuggested},
      {"_adaptive_avg_pool2d_backward", LayoutRule::kSuggestedNext},
      {"_upsample_bicubic2d_aa", LayoutRule::kSuggested},
      {"_upsample_bilinear2d_aa", LayoutRule::kSuggested},
      {"_upsample_bilinear2d_aa_backward", LayoutRule::kSuggested},
      {"_upsample_nearest_exact2d", LayoutRule::kSuggested},
      {"_upsample_nearest_exact2d_backward", LayoutRule::kSuggested},
      {"_upsample_nearest_exact3d", LayoutRule::kSuggested},
      {"adaptive_max_pool2d", LayoutRule::kSuggested},
      {"adaptive_max_pool2d_backward", LayoutRule::kSuggestedNext},
      {"avg_pool2d", LayoutRule::kSuggested},
      {"avg_pool2d_backward", LayoutRule::kSuggestedNext},
      {"batch_norm_backward_evaluation", LayoutRule::kSuggestedNext},
      {"batch_norm_backward_training", LayoutRule::kSuggestedNext},
      {"batch_norm_inference", LayoutRule::kSuggested},
      {"constant_pad_nd", LayoutRule::kSuggested},
      {"convolution", LayoutRule::kSuggestedAny},
      {"convolution_backward", LayoutRule::kSuggestedLast},
      {"convolution_overrideable", LayoutRule::kSuggestedAny},
      {"convolution_backward_overrideable", LayoutRule::kSuggestedLast},
      {"max_pool2d_with_indices", LayoutRule::kSuggested},
      {"max_pool2d_with_indices_backward", LayoutRule::kSuggestedNext},
      {"max_pool3d_with_indices", LayoutRule::kVolume},
      {"max_pool3d_with_indices_backward", LayoutRule::kVolumeNext},
      {"max_unpool2d", LayoutRule::kSuggested},
      {"native_batch_norm", LayoutRule::kSuggested},
      {"native_group_norm", LayoutRule::kSuggested},
      {"native_group_norm_backward", LayoutRule::kSuggestedNext},
      {"pixel_shuffle", LayoutRule::kSuggested},
      {"reflection_pad2d", LayoutRule::kSuggested},
      {"reflection_pad2d_backward", LayoutRule::kSuggestedNext},
      {"reflection_pad3d", LayoutRule::kSuggested},
      {"reflection_pad3d_backward", LayoutRule::kSuggestedNext},
      {"replication_pad2d", LayoutRule::kSuggested},
      {"replication_pad2d_backward", LayoutRule::kSuggestedNext},
      {"replication_pad3d", LayoutRule::kSuggested},
      {"replication_pad3d_backward", LayoutRule::kSuggestedNext},
      {"upsample_bicubic2d", LayoutRule::kSuggested},
      {"upsample_bilinear2d", LayoutRule::kSuggested},
      {"upsample_bilinear2d_backward", LayoutRule::kSuggested},
      {"upsample_nearest2d", LayoutRule::kSuggested},
      {"upsample_nearest2d_backward", LayoutRule::kSuggested},
      {"upsample_nearest3d", LayoutRule::kSuggested},
      {"upsample_trilinear3d", LayoutRule::kSuggested},
      {"upsample_trilinear3d_backward", LayoutRule::kSuggested},
      // Element-wise ones whose kernels read the operand before the gradient.
      {"leaky_relu_backward", LayoutRule::kElementwiseNext},
      {"threshold_backward", LayoutRule::kElementwiseNext},
      // Other ways that element-wise operators are recorded.
      {"addr", LayoutRule::kPreserved},
      {"binary_cross_entropy", LayoutRule::kPreserved},
      {"binary_cross_entropy_backward", LayoutRule::kPreservedNext},
      {"binary_cross_entropy_with_logits", LayoutRule::kPreservedNext},
      {"complex", LayoutRule::kElementwise},
      {"dropout", LayoutRule::kElementwise},
      {"frexp", LayoutRule::kElementwise},
      {"glu", LayoutRule::kElementwise},
      {"huber_loss", LayoutRule::kElementwise},
      {"log_sigmoid_backward", LayoutRule::kElementwise},
      {"log_sigmoid_forward", LayoutRule::kElementwise},
      {"mse_loss", LayoutRule::kElementwise},
      {"native_dropout_backward", LayoutRule::kElementwise},
      {"polar", LayoutRule::kElementwise},
      {"power_constant", LayoutRule::kElementwise},
      {"smooth_l1_loss", LayoutRule::kElementwise},
      {"soft_margin_loss", LayoutRule::kElementwise},
      {"where", LayoutRule::kElementwise},
      // Places.
      {"concatenate", LayoutRule::kSuggestedAll},
      {"diagonal_scatter", LayoutRule::kPreserved},
      {"flip", LayoutRule::kPreserved},
      {"index_fill", LayoutRule::kPreserved},
      {"index_put", LayoutRule::kPreserved},
      {"put", LayoutRule::kPreserved},
      {"select_scatter", LayoutRule::kPreserved},
      {"slice_scatter", LayoutRule::kPreserved},
      {"sort", LayoutRule::kPreserved},
  };
  return *rules;
}

std::optional<LayoutRule> RuleOf(std::string_view name) {
  constexpr std::string_view kNamespace = "aten::";
  if (name.substr(0, kNamespace.size()) == kNamespace) name.remove_prefix(kNamespace.size());
  const auto rule = LayoutRules().find(name);
  return rule == LayoutRules().end() ? std::nullopt : std::optional(rule->second);
}

// -1, 0 or 1: which of two dimensions of the result is to be the nearer one, as the operands lie.
int Compare(const std::vector<DimVector>& operands, IntArrayRef sizes, int64_t a, int64_t b) {
  for (const DimVector& strides : operands) {
    if (strides[a] == 0 || strides[b] == 0) continue;  // one is broadcast
    if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

// Strides of an operand in the result's dimensions; 0 where it is broadcast.
DimVector BroadcastStrides(const at::Tensor& x, IntArrayRef sizes) {
  DimVector strides(sizes.size(), 0);
  const auto offset = static_cast<int64_t>(sizes.size()) - x.dim();
  for (int64_t i = 0; i < x.dim(); ++i) {
    const bool is_broadcast = x.size(i) == 1 && sizes[offset + i] != 1;
    strides[offset + i] = is_broadcast ? 0 : x.stride(i);
  }
  return strides;
}

// The operands' order of dimensions, as far as they agree: an insertion sort, since what is not
// comparable is no order.
DimVector MergedOrder(IntArrayRef sizes, const Operands& operands) {
  std::vector<DimVector> strides;
  for (const at::Tensor* x : operands) strides.push_back(BroadcastStrides(*x, sizes));
  const auto rank = static_cast<int64_t>(sizes.size());
  DimVector nearest_first(rank);
  std::iota(nearest_first.rbegin(), nearest_first.rend(), 0);
  for (int64_t i = 1; i < rank; ++i) {
    int64_t place = i;
    for (int64_t j = i - 1; j >= 0; --j) {
      const int order = Compare(strides, sizes, nearest_first[j], nearest_first[place]);
      if (order < 0) break;
      if (order == 0) continue;
      std::swap(nearest_first[j], nearest_first[place]);
      place = j;
    }
  }
  return {nearest_first.rbegin(), nearest_first.rend()};
}

DimVector ElementwiseStrides(IntArrayRef sizes, const Operands& operands, bool has_number) {
  const auto all = [&](auto holds) { return std::ranges::all_of(operands, holds); };
  const auto are_all = [&](MemoryFormat format) {
    return all([&](const at::Tensor* x) { return x->is_contiguous(format); });
  };
  const auto is_alike = [&](const at::Tensor* x) {
    return x->sizes() == sizes && x->strides() == operands[0]->strides();
  };
  if (!has_number && all([&](const at::Tensor* x) { return x->sizes() == sizes; })) {
    if (are_all(MemoryFormat::Contiguous)) return FormatStrides(sizes, MemoryFormat::Contiguous);
    if (sizes.size() == 4 && are_all(MemoryFormat::ChannelsLast)) {
      return FormatStrides(sizes, MemoryFormat::ChannelsLast);
    }
    if (all(is_alike) && operands[0]->is_non_overlapping_and_dense()) {
      return DimVector(operands[0]->strides());
    }
  }
  return OrderedStrides(sizes, MergedOrder(sizes, operands));
}

hlo::Dimensions FarthestFirst(IntArrayRef strides) {
  hlo::Dimensions order(strides.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](int64_t d) { return strides[d]; });
  return order;
}

MemoryFormat Suggested(const at::Tensor& x) { return x.suggest_memory_format(); }

MemoryFormat AnySuggested(at::ArrayRef<const at::Tensor*> operands) {
  for (const at::Tensor* x : operands) {
    if (Suggested(*x) != MemoryFormat::Contiguous) return Suggested(*x);
  }
  return MemoryFormat::Contiguous;
}

MemoryFormat AllSuggested(const Operands& operands) {
  for (const at::Tensor* x : operands) {
    if (Suggested(*x) != Suggested(*operands[0])) return MemoryFormat::Contiguous;
  }
  return Suggested(*operands[0]);
}

// Of one element of a batch, too: what its strides would be with the batch.
MemoryFormat SuggestedOfVolume(const at::Tensor& x) {
  if (x.dim() != 4) return Suggested(x);
  DimVector sizes(x.sizes()), strides(x.strides());
  sizes.insert(sizes.begin(), 1);
  strides.insert(strides.begin(), x.numel());
  return !x.is_contiguous() && c10::is_channels_last_strides_3d(sizes, strides)
             ? MemoryFormat::ChannelsLast3d
             : MemoryFormat::Contiguous;
}

MemoryFormat SuggestedBy(LayoutRule rule, const Operands& operands) {
  const at::ArrayRef<const at::Tensor*> all(operands);
  switch (rule) {
    case LayoutRule::kSuggestedAny:
      return AnySuggested(all.slice(0, std::min<size_t>(2, all.size())));
    case LayoutRule::kSuggestedAll:
      return AllSuggested(operands);
    case LayoutRule::kSuggestedNext:
      return Suggested(*all[std::min<size_t>(1, all.size() - 1)]);
    case LayoutRule::kSuggestedLast:
      return AnySuggested(all.slice(1, std::min<size_t>(2, all.size() - 1)));
    case LayoutRule::kVolume:
      return SuggestedOfVolume(*all[0]);
    case LayoutRule::kVolumeNext:
      return SuggestedOfVolume(*all[all[0]->dim() == 4 ? 0 : 1]);
    default:
      return Suggested(*all[0]);
  }
}

void LayOutAs(const at::Tensor& result, const at::Tensor& operand) {
  if (result.sizes() != operand.sizes()) return;
  LayOut(result, StridesLike(operand, std::nullopt));
}

// Lays a result out in a format; one without a batch only where a rule says that it has one.
void LayOutInFormat(const at::Tensor& result, MemoryFormat format, LayoutRule rule) {
  const bool is_volume = rule == LayoutRule::kVolume || rule == LayoutRule::kVolumeNext;
  const int64_t rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
  if (result.dim() == rank) {
    LayOut(result, FormatStrides(result.sizes(), format));
  } else if (is_volume && result.dim() == 4) {
    DimVector sizes(result.sizes());
    sizes.insert(sizes.begin(), 1);
    LayOut(result, IntArrayRef(FormatStrides(sizes, format)).slice(1));
  }
}

}  // namespace

bool IsDense(IntArrayRef sizes, IntArrayRef strides) {
  if (c10::multiply_integers(sizes) == 0) return true;
  int64_t expected = 1;
  const hlo::Dimensions order = FarthestFirst(strides);
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    if (sizes[*d] == 1) continue;
    if (strides[*d] != expected) return false;
    expected *= sizes[*d];
  }
  return true;
}

hlo::Dimensions MemoryOrder(IntArrayRef sizes, IntArrayRef strides) {
  hlo::Dimensions order = FarthestFirst(strides);
  int64_t last = -1;
  bool is_row_major = true;
  for (int64_t d : order) {
    if (sizes[d] == 1) continue;
    is_row_major = is_row_major && d > last;
    last = d;
  }
  if (is_row_major || c10::multiply_integers(sizes) == 0) order.clear();
  return order;
}

DimVector OrderedStrides(IntArrayRef sizes, IntArrayRef order) {
  DimVector strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride *= std::max<int64_t>(sizes[order[i]], 1);
  }
  return strides;
}

DimVector FormatStrides(IntArrayRef sizes, MemoryFormat format) {
  switch (format) {
    case MemoryFormat::ChannelsLast:
      TORCH_CHECK(sizes.size() == 4, "required rank 4 tensor to use channels_last format");
      return DimVector(c10::get_channels_last_strides_2d(sizes));
    case MemoryFormat::ChannelsLast3d:
      TORCH_CHECK(sizes.size() == 5, "required rank 5 tensor to use channels_last_3d format");
      return DimVector(c10::get_channels_last_strides_3d(sizes));
    default:
      TORCH_CHECK(format == MemoryFormat::Contiguous, "unsupported memory format ", format);
      return c10::contiguous_strides(sizes);
  }
}

DimVector StridesLike(const at::Tensor& x, std::optional<MemoryFormat> format) {
  if (format.value_or(MemoryFormat::Preserve) != MemoryFormat::Preserve) {
    return FormatStrides(x.sizes(), *format);
  }
  if (x.layout() != at::kStrided) return c10::contiguous_strides(x.sizes());
  if (x.is_non_overlapping_and_dense()) return DimVector(x.strides());
  return DimVector(at::infer_dense_strides(x.sizes(), x.strides()));
}

void LayOut(const at::Tensor& fresh, IntArrayRef strides) {
  if (fresh.strides() == strides) return;
  Impl(fresh)->xla_storage()->set_memory_order(MemoryOrder(fresh.sizes(), strides));
  fresh.unsafeGetTensorImpl()->set_sizes_and_strides(fresh.sizes(), strides);
}

void LayOutElementwise(std::string_view name, const at::Tensor& result, Operands operands,
                       bool has_number) {
  const auto is_read = [&](const at::Tensor* x) { return x->dim() <= result.dim(); };
  if (operands.empty() || !std::ranges::all_of(operands, is_read)) return;  // a result beside it
  if (RuleOf(name) == LayoutRule::kElementwiseNext && operands.size() > 1) {
    std::swap(operands[0], operands[1]);
  }
  LayOut(result, ElementwiseStrides(result.sizes(), operands, has_number));
}

void LayOutResults(std::string_view name, at::ArrayRef<const at::Tensor*> results,
                   const Operands& operands) {
  const std::optional<LayoutRule> rule = RuleOf(name);
  if (!rule || operands.empty()) return;
  for (const at::Tensor* result : results) {
    if (!result->defined()) continue;
    if (*rule == LayoutRule::kElementwise || *rule == LayoutRule::kElementwiseNext) {
      LayOutElementwise(name, *result, operands, /*has_number=*/false);
    } else if (*rule == LayoutRule::kPreserved) {
      LayOutAs(*result, *operands[0]);
    } else if (*rule == LayoutRule::kPreservedNext) {
      LayOutAs(*result, *operands[std::min<size_t>(1, operands.size() - 1)]);
    } else {
      const MemoryFormat format = SuggestedBy(*rule, operands);
      if (format != MemoryFormat::Contiguous) LayOutInFormat(*result, format, *rule);
    }
  }
}

}  // namespace torch_xla
