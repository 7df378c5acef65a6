#include "cpu/kernel_recipe.h"

#include <algorithm>

#include "hlo/module.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Whether what emits this operation compares sizes by KernelSizes alone, beside whether one is 1 or
// 0, which is the same wherever the key is, and whether two numbers are equal, where the code for
// unequal ones is right for equal ones, too.
bool ComparesByName(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kPad:  // gaps between elements are counted as numbers
      return std::ranges::all_of(instruction.as<hlo::PadAttributes>().interior_padding,
                                 [](int64_t gap) { return gap == 0; });
    case Opcode::kBitcastConvert:
    case Opcode::kBroadcastInDim:
    case Opcode::kComposite:
    case Opcode::kConcatenate:
    case Opcode::kConstant:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kGather:
    case Opcode::kGetTupleElement:
    case Opcode::kIota:
    case Opcode::kMap:
    case Opcode::kParameter:
    case Opcode::kReduce:
    case Opcode::kReshape:
    case Opcode::kReverse:
    case Opcode::kScatter:
    case Opcode::kSlice:
    case Opcode::kTranspose:
      return true;
    default:
      return hlo::IsElementwise(instruction.opcode());
  }
}

// A complex constant is in the code even where its bits are a size.
bool IsComplex(const Instruction& instruction) {
  return instruction.shape().is_array() && hlo::IsComplex(instruction.element_type());
}

bool ComparesByName(const Computation& body) {
  return std::ranges::all_of(body.instructions(), [](const auto& instruction) {
    return ComparesByName(*instruction) && !IsComplex(*instruction);
  });
}

// Whether the sizes of `formula` are all among `sizes`.
bool IsOf(const Formula& formula, const std::vector<int64_t>& sizes) {
  switch (formula.kind) {
    case Formula::Kind::kSize:
      return std::ranges::find(sizes, formula.number) != sizes.end();
    case Formula::Kind::kConstant:
      return true;
    default:
      return IsOf(*formula.left, sizes) && IsOf(*formula.right, sizes);
  }
}
bool IsOf(const Extent& number, const std::vector<int64_t>& sizes) {
  return !number.varies || IsOf(*number.formula, sizes);
}
bool IsOf(const KernelSizes& emitted, const std::vector<int64_t>& sizes) {
  const auto is_of = [&](const Extent& number) { return IsOf(number, sizes); };
  return is_of(emitted.work()->units) && is_of(emitted.work()->elements) &&
         std::ranges::all_of(emitted.slots(), is_of) &&
         std::ranges::all_of(emitted.decisions(), [&](const Decision& decision) {
           return is_of(decision.left) && is_of(decision.right);
         });
}

}  // namespace

RecipeKey RecipeKeyOf(const KernelSignature& signature, const VaryingNumbers& varying) {
  RecipeKey key;
  key.text = signature.structure;
  std::vector<uint32_t> classes;  // of the key's sizes
  std::vector<int64_t> constants;
  auto in_code = signature.in_code.begin();
  for (size_t i = 0; i < signature.numbers.size(); ++i) {
    const int64_t number = signature.numbers[i];
    const bool is_in_code = in_code != signature.in_code.end() && *in_code == i;
    if (is_in_code) ++in_code;
    if (is_in_code || varying[i] == 0) {
      key.text += '=';
      AppendNumber(key.text, number);
      // Emission asks for no size of what is always in the code.
      if (!is_in_code) constants.push_back(number);
      continue;
    }
    const auto found = std::ranges::find(classes, varying[i]);
    key.text += '~';
    AppendNumber(key.text, found - classes.begin());
    if (found != classes.end()) continue;
    classes.push_back(varying[i]);
    key.is_told_by_values &= std::ranges::find(key.sizes, number) == key.sizes.end();
    key.sizes.push_back(number);
  }
  key.is_told_by_values &= std::ranges::none_of(constants, [&](int64_t constant) {
    return std::ranges::find(key.sizes, constant) != key.sizes.end();
  });
  return key;
}

std::shared_ptr<const KernelRecipe> KernelRecipe::Of(
    const Instruction& composite, const KernelSizes& emitted, std::vector<int64_t> sizes,
    const std::shared_ptr<const KernelCode>& code) {
  const bool is_known =
      emitted.work() && ComparesByName(*composite.called_computations()[0]) && IsOf(emitted, sizes);
  if (!is_known) return nullptr;
  return std::shared_ptr<const KernelRecipe>(new KernelRecipe(emitted, std::move(sizes), code));
}

KernelRecipe::KernelRecipe(const KernelSizes& emitted, std::vector<int64_t> sizes,
                           const std::shared_ptr<const KernelCode>& code)
    : sizes_(std::move(sizes)),
      decisions_(emitted.decisions()),
      slots_(emitted.slots()),
      work_(*emitted.work()),
      code_(code) {}

std::optional<KernelInfo> KernelRecipe::For(std::span<const int64_t> sizes) const {
  const auto is_same = [&](const Decision& decision) { return ComesOutTheSame(decision, sizes); };
  if (sizes.size() != sizes_.size() || !std::ranges::all_of(decisions_, is_same)) {
    return std::nullopt;
  }
  KernelInfo info;
  info.units = ValueOf(work_.units, sizes);
  info.unit_cost = CostOfUnit(work_, ValueOf(work_.elements, sizes));
  info.slots.reserve(slots_.size());
  for (const Extent& slot : slots_) info.slots.push_back(ValueOf(slot, sizes));
  return info;
}

bool KernelRecipe::ComesOutTheSame(const Decision& decision, std::span<const int64_t> sizes) const {
  const int64_t left = ValueOf(decision.left, sizes), right = ValueOf(decision.right, sizes);
  const bool is_less = decision.relation == Decision::Relation::kLess;
  return (is_less ? left < right : left == right) == decision.outcome;
}

int64_t KernelRecipe::ValueOf(const Extent& number, std::span<const int64_t> sizes) const {
  return number.varies ? ValueOf(*number.formula, sizes) : number.value;
}

int64_t KernelRecipe::ValueOf(const Formula& formula, std::span<const int64_t> sizes) const {
  using enum Formula::Kind;
  if (formula.kind == kConstant) return formula.number;
  if (formula.kind == kSize) {
    return sizes[static_cast<size_t>(std::ranges::find(sizes_, formula.number) - sizes_.begin())];
  }
  const int64_t left = ValueOf(*formula.left, sizes), right = ValueOf(*formula.right, sizes);
  switch (formula.kind) {
    case kProduct:
      return left * right;
    case kSum:
      return left + right;
    case kDifference:
      return left - right;
    default:
      return left / right;
  }
}

int64_t KernelRecipe::bytes() const {
  // A decision's formulas are a few nodes.
  constexpr size_t kBytesOfFormula = 256;
  return static_cast<int64_t>(sizeof(KernelRecipe) +
                              decisions_.size() * (sizeof(Decision) + kBytesOfFormula) +
                              slots_.size() * (sizeof(Extent) + kBytesOfFormula));
}

}  // namespace cpu
