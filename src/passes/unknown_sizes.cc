#include "passes/unknown_sizes.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace passes {
namespace {

constexpr hlo::ElementType kScalarType = hlo::ElementType::kS32;

}  // namespace

bool HasUnknown(const Extents& extents) { return std::ranges::any_of(extents, IsUnknown); }

hlo::Dimensions KnownDimensions(const Extents& extents) {
  hlo::Dimensions dimensions;
  for (const int64_t extent : extents) {
    dimensions.push_back(IsUnknown(extent) ? hlo::kDynamic : extent);
  }
  return dimensions;
}

int64_t UnknownSizes::OfDimension(hlo::Value value, int64_t dimension) {
  return Add(builder_.Create(hlo::Opcode::kGetDimensionSize, {value},
                             hlo::DimensionAttributes{dimension}));
}

int64_t UnknownSizes::Common(const std::set<int64_t>& unknown) {
  if (unknown.size() == 1) return *unknown.begin();
  if (const auto made = common_.find(unknown); made != common_.end()) return made->second;
  const hlo::Value one = builder_.ConstantScalar(kScalarType, int64_t{1});
  hlo::Value size = Scalar(*unknown.begin());
  for (auto other = std::next(unknown.begin()); other != unknown.end(); ++other) {
    size = builder_.Select(builder_.Eq(size, one), Scalar(*other), size);
  }
  return common_.emplace(unknown, Add(size)).first->second;
}

hlo::Value UnknownSizes::Vector(const Extents& extents) {
  std::vector<hlo::Value> parts;
  for (const int64_t extent : extents) parts.push_back(builder_.Reshape(Scalar(extent), {1}));
  return parts.size() == 1 ? parts[0] : builder_.Concatenate(std::move(parts), 0);
}

int64_t UnknownSizes::Add(hlo::Value scalar) {
  scalars_.push_back(scalar);
  return -static_cast<int64_t>(scalars_.size());
}

hlo::Value UnknownSizes::Scalar(int64_t extent) {
  return IsUnknown(extent) ? scalars_[static_cast<size_t>(-extent - 1)]
                           : builder_.ConstantScalar(kScalarType, extent);
}

}  // namespace passes
