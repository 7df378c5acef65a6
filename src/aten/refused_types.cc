#include "aten/refused_types.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include <c10/util/Exception.h>

#include "hlo/error.h"
#include "lazy/operation.h"

namespace torch_xla {
namespace {

using hlo::ElementType;

// Bits of what is refused.
constexpr unsigned kBoolBit = 1, kByteBit = 2, kLongBit = 4, kOtherIntegerBit = 8, kComplexBit = 16;
constexpr unsigned kIntegerBit = kLongBit | kOtherIntegerBit;
constexpr unsigned kDiscrete = kBoolBit | kByteBit | kIntegerBit;

struct TypeRule {
  unsigned refused;
  // So many operands promote, and all of them have to be of refused types.
  size_t operands = 1;
  // So many do not promote: they have to be of one type.
  size_t alike = 0;
};

unsigned RefusalBit(ElementType type) {
  if (type == ElementType::kPred) return kBoolBit;
  if (type == ElementType::kU8) return kByteBit;
  if (type == ElementType::kS64) return kLongBit;
  if (hlo::IsInteger(type)) return kOtherIntegerBit;
  return hlo::IsComplex(type) ? kComplexBit : 0;
}

constexpr TypeRule kNoBools{kBoolBit}, kNoComplex{kComplexBit}, kNoDiscrete{kDiscrete};
constexpr TypeRule kOnlyReal{kDiscrete | kComplexBit};
constexpr TypeRule kOnlyImages{kBoolBit | kIntegerBit | kComplexBit};
constexpr TypeRule kNoShort{kBoolBit | kByteBit | kOtherIntegerBit | kComplexBit};

// By the name of the operator, or of the lowering where several have one.
const std::unordered_map<std::string_view, TypeRule>& TypeRules() {
  static const auto* rules = new std::unordered_map<std::string_view, TypeRule>{
      // Products of matrices and vectors.
      {"aten::addbmm", kNoBools},
      {"aten::addmm", kNoBools},
      {"aten::addmv", kNoBools},
      {"aten::baddbmm", kNoBools},
      {"aten::bmm", kNoBools},
      {"aten::dot", kNoBools},
      {"aten::mm", kNoBools},
      {"aten::mv", kNoBools},
      {"aten::vdot", kNoBools},
      // One operand.
      {"aten::abs", kNoBools},
      {"aten::ceil", kNoBools},
      {"aten::floor", kNoBools},
      {"aten::frac", kNoDiscrete},
      {"aten::gelu", kOnlyReal},
      {"aten::glu", kNoComplex},
      {"aten::hardshrink", kNoDiscrete},
      {"aten::hardsigmoid", kOnlyReal},
      {"aten::hardswish", kOnlyReal},
      {"aten::isneginf", kNoComplex},
      {"aten::isposinf", kNoComplex},
      {"aten::hardtanh", {kBoolBit | kComplexBit}},
      {"aten::leaky_relu", kNoDiscrete},
      {"aten::logit", kNoComplex},
      {"aten::relu", {kBoolBit | kComplexBit}},
      {"aten::round", kNoBools},
      {"aten::softshrink", kNoDiscrete},
      {"aten::threshold", kNoBools},
      {"aten::trunc", kNoBools},
      // Several operands.
      {"aten::_log_softmax_backward_data", {.refused = kDiscrete, .alike = 2}},
      {"aten::_prelu_kernel", kNoDiscrete},
      {"aten::_softmax_backward_data", {.refused = kDiscrete, .alike = 2}},
      {"aten::addcdiv", {kDiscrete, 3}},
      {"aten::addcmul", {kBoolBit, 3}},
      {"aten::binary_cross_entropy", {kComplexBit, 2}},
      {"aten::clamp", {kBoolBit, 3}},
      {"aten::huber_loss", {kDiscrete | kComplexBit, 2}},
      {"aten::igamma", {kDiscrete | kComplexBit, 2}},
      {"aten::igammac", {kDiscrete | kComplexBit, 2}},
      {"aten::lerp", {.refused = kDiscrete, .alike = 2}},
      {"aten::logaddexp", {kDiscrete, 2}},
      {"aten::logaddexp2", {kDiscrete, 2}},
      {"aten::mse_loss", {kDiscrete | kComplexBit, 2}},
      {"aten::multi_margin_loss", kOnlyReal},
      {"aten::multilabel_margin_loss_forward", kOnlyReal},
      {"aten::native_group_norm", kNoComplex},
      {"aten::nextafter", {kComplexBit, 2}},
      {"aten::nll_loss2d_forward", kOnlyReal},
      {"aten::nll_loss_forward", kOnlyReal},
      {"aten::smooth_l1_loss", {kDiscrete | kComplexBit, 2}},
      // Reductions, sorts and searches.
      {"aten::_log_softmax", kNoComplex},
      {"aten::_logcumsumexp", kNoDiscrete},
      {"aten::_softmax", kNoComplex},
      {"aten::logcumsumexp", kNoDiscrete},
      {"aten::amax", kNoComplex},
      {"aten::amin", kNoComplex},
      {"aten::aminmax", kNoComplex},
      {"aten::argmax", {kBoolBit | kComplexBit}},
      {"aten::argmin", {kBoolBit | kComplexBit}},
      {"aten::bucketize", {kBoolBit, 2}},
      {"aten::kthvalue", kNoBools},
      {"aten::max", kNoComplex},
      {"aten::median", {kBoolBit | kComplexBit}},
      {"aten::min", kNoComplex},
      {"aten::mode", kNoComplex},
      {"aten::nanmedian", {kBoolBit | kComplexBit}},
      {"aten::searchsorted", {kBoolBit, 2}},
      {"aten::sort", kNoComplex},
      {"aten::topk", {kBoolBit | kComplexBit}},
      // Windows and images.
      {"aten::_adaptive_avg_pool2d", kOnlyReal},
      {"aten::_adaptive_avg_pool3d", kOnlyReal},
      {"aten::adaptive_max_pool2d", kOnlyReal},
      {"aten::adaptive_max_pool3d", kOnlyReal},
      {"aten::avg_pool2d", kNoShort},
      {"aten::avg_pool3d", kNoShort},
      {"aten::max_pool2d_with_indices", {kBoolBit | kComplexBit}},
      {"aten::max_pool3d_with_indices", {kBoolBit | kComplexBit}},
      {"aten::reflection_pad1d", kNoBools},
      {"aten::reflection_pad2d", kNoBools},
      {"aten::reflection_pad3d", kNoBools},
      {"aten::replication_pad1d", kNoBools},
      {"aten::replication_pad2d", kNoBools},
      {"aten::replication_pad3d", kNoBools},
      {"aten::_upsample_bicubic2d_aa", kOnlyImages},
      {"aten::_upsample_bilinear2d_aa", kOnlyImages},
      {"aten::_upsample_nearest_exact1d", kOnlyImages},
      {"aten::_upsample_nearest_exact2d", kOnlyImages},
      {"aten::_upsample_nearest_exact3d", kOnlyImages},
      {"aten::upsample_bicubic2d", kOnlyImages},
      {"aten::upsample_bilinear2d", kOnlyImages},
      {"aten::upsample_linear1d", kOnlyReal},
      {"aten::upsample_nearest1d", kOnlyImages},
      {"aten::upsample_nearest2d", kOnlyImages},
      {"aten::upsample_nearest3d", kOnlyImages},
      {"aten::upsample_trilinear3d", kOnlyReal},
  };
  return *rules;
}

}  // namespace

void CheckKernel(bool has_kernel, const char* kernel, at::ScalarType type) {
  TORCH_CHECK_NOT_IMPLEMENTED(has_kernel, '"', kernel, "\" not implemented for '", type, "'");
}

bool RefusesTypes(const lazy::Operation& operation) {
  const auto it = TypeRules().find(operation.kind().name);
  if (it == TypeRules().end()) return false;
  const auto is_refused = [&](lazy::ShapeRef shape) {
    return (RefusalBit(shape->element_type()) & it->second.refused) != 0;
  };
  auto operands = operation.operand_shapes();
  operands = operands.first(std::min(operands.size(), it->second.operands));
  return !operands.empty() && std::ranges::all_of(operands, is_refused);
}

void CheckTypes(const lazy::Operation& operation) {
  const auto it = TypeRules().find(operation.kind().name);
  if (it == TypeRules().end()) return;
  const auto operands = operation.operand_shapes();
  for (lazy::ShapeRef shape : operands.first(std::min(operands.size(), it->second.alike))) {
    if (shape->element_type() == operands[0]->element_type()) continue;
    throw hlo::Error("operands have to be of one type, but are " + operands[0]->ToString() +
                     " and " + shape->ToString());
  }
  const auto is_empty = [](lazy::ShapeRef shape) { return shape->num_elements() == 0; };
  if (std::ranges::any_of(operands, is_empty) || !RefusesTypes(operation)) return;
  throw hlo::Error(
      hlo::ErrorCode::kUnimplemented,
      "not implemented for " + std::string(hlo::ShortName(operands[0]->element_type())));
}

}  // namespace torch_xla
