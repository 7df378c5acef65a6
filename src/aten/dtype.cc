#include "aten/dtype.h"

#include <c10/util/Exception.h>

namespace torch_xla {
namespace {

using hlo::ElementType;

constexpr std::pair<at::ScalarType, ElementType> kTypes[] = {
    {at::kFloat, ElementType::kF32},
    {at::kLong, ElementType::kS64},
    {at::kBool, ElementType::kPred},
    {at::kDouble, ElementType::kF64},
    {at::kHalf, ElementType::kF16},
    {at::kBFloat16, ElementType::kBF16},
    {at::kInt, ElementType::kS32},
    {at::kByte, ElementType::kU8},
    {at::kChar, ElementType::kS8},
    {at::kShort, ElementType::kS16},
    {at::kUInt16, ElementType::kU16},
    {at::kUInt32, ElementType::kU32},
    {at::kUInt64, ElementType::kU64},
    {at::kComplexFloat, ElementType::kC64},
    {at::kComplexDouble, ElementType::kC128},
    {at::kFloat8_e4m3fn, ElementType::kF8E4M3FN},
    {at::kFloat8_e4m3fnuz, ElementType::kF8E4M3FNUZ},
    {at::kFloat8_e5m2, ElementType::kF8E5M2},
    {at::kFloat8_e5m2fnuz, ElementType::kF8E5M2FNUZ},
};

}  // namespace

ElementType ToElementType(at::ScalarType type) {
  for (const auto& [torch_type, element_type] : kTypes) {
    if (torch_type == type) return element_type;
  }
  TORCH_CHECK_TYPE(type != at::kComplexHalf,
                   "dtype ComplexHalf is not supported on the xla device: StableHLO has no complex "
                   "numbers of half precision. Use complex64.");
  TORCH_CHECK_TYPE(false, "dtype ", type, " is not supported on the xla device");
}

at::ScalarType ToScalarType(ElementType type) {
  for (const auto& [torch_type, element_type] : kTypes) {
    if (element_type == type) return torch_type;
  }
  TORCH_CHECK_TYPE(false, "element type ", std::string(hlo::ShortName(type)),
                   " has no dtype in torch");
}

}  // namespace torch_xla
