#include "cpu/passes/engine_passes.h"

#include <algorithm>
#include <vector>

#include "cpu/control_flow.h"
#include "cpu/fusible.h"
#include "cpu/library/short_lines.h"
#include "cpu/library/sort.h"
#include "cpu/passes/composite.h"
#include "passes/for_each_computation.h"

namespace cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Values = std::vector<Instruction*>;

// To sort all takes no longer if more of it is wanted than one part of so many: of its first
// elements, and of those from the middle.
constexpr int64_t kLeastParts = 4, kLeastPartsOfMiddle = 64;

// Whether it cuts the sorted dimension only.
bool IsOfSomePlaces(const Instruction& slice, int64_t dimension) {
  if (slice.opcode() != Opcode::kSlice) return false;
  const auto& range = slice.as<hlo::SliceAttributes>();
  const hlo::Dimensions& whole = slice.operand(0)->dimensions();
  for (size_t d = 0; d < whole.size(); ++d) {
    if (range.strides[d] != 1) return false;
    if (static_cast<int64_t>(d) == dimension) continue;
    if (range.start_indices[d] != 0 || range.limit_indices[d] != whole[d]) return false;
  }
  return true;
}

// Whether what the slices read of a sort's lines, from the first place to the last, is little. Of
// short lines no place is found sooner than another, and only those that are wanted are written.
bool AreOfFew(const Values& slices, const hlo::Shape& shape, int64_t dimension) {
  const int64_t length = shape.dimensions()[dimension];
  if (length > 0 && AreShortLines(length, shape.num_elements() / length)) return true;
  int64_t begin = length, end = 0;
  for (const Instruction* slice : slices) {
    const auto& range = slice->as<hlo::SliceAttributes>();
    begin = std::min(begin, range.start_indices[dimension]);
    end = std::max(end, range.limit_indices[dimension]);
  }
  return end * kLeastParts <= length || (end - begin) * kLeastPartsOfMiddle <= length;
}

// Where the sorted elements were before: not made, as the library has it.
bool IsPosition(const Instruction& operand, int64_t dimension) {
  return operand.opcode() == Opcode::kIota && hlo::IsInteger(operand.element_type()) &&
         hlo::BitWidth(operand.element_type()) >= 32 &&
         operand.as<hlo::DimensionAttributes>().dimension == dimension;
}

bool IsServed(const Instruction& sort) {
  if (sort.opcode() != Opcode::kSort || !HasNativeOperands(sort)) return false;
  const int64_t length = sort.operand(0)->dimensions()[sort.as<hlo::SortAttributes>().dimension];
  return length <= int64_t{UINT32_MAX} && RecognizeSortOrder(*sort.called_computations()[0]);
}

bool IsGivenBack(const Instruction& value) {
  return std::ranges::find(value.parent()->results(), &value) != value.parent()->results().end();
}

// The slices that are all that is read of a sort; none if anything else is, or most of it.
Values SlicesOf(Instruction* sort) {
  const bool has_several = sort->shape().is_tuple();
  const hlo::InstructionList picked = has_several ? sort->users() : hlo::InstructionList{sort};
  if (IsGivenBack(*sort)) return {};
  const int64_t dimension = sort->as<hlo::SortAttributes>().dimension;
  Values slices;
  for (const Instruction* result : picked) {
    if (has_several && result->opcode() != Opcode::kGetTupleElement) return {};
    if (IsGivenBack(*result)) return {};
    for (Instruction* user : result->users()) {
      if (!IsOfSomePlaces(*user, dimension)) return {};
      slices.push_back(user);
    }
  }
  return AreOfFew(slices, sort->operand(0)->shape(), dimension) ? slices : Values();
}

Values Members(Instruction* sort, const Values& slices) {
  const int64_t dimension = sort->as<hlo::SortAttributes>().dimension;
  const int64_t keys = RecognizeSortOrder(*sort->called_computations()[0])->operand;
  Values members;
  for (size_t i = 0; i < sort->operand_count(); ++i) {
    Instruction* operand = sort->operand(i);
    if (operand != sort->operand(keys) && IsPosition(*operand, dimension))
      members.push_back(operand);
  }
  members.push_back(sort);
  for (Instruction* slice : slices) {
    if (slice->operand(0) != sort) members.push_back(slice->operand(0));
  }
  members.insert(members.end(), slices.begin(), slices.end());
  return members;
}

bool MakeTopKCallsIn(hlo::Computation& computation) {
  return passes::RewriteEach(computation, IsServed, [](Instruction* sort) {
    const Values slices = SlicesOf(sort);
    if (slices.empty()) return false;
    for (const Replacement& replacement : AddComposite(Members(sort, slices), slices, kTopKCall)) {
      replacement.value->ReplaceAllUsesWith(replacement.by);
    }
    return true;
  });
}

}  // namespace

bool MakeTopKCalls(hlo::Module& module) { return RewriteSteps(module, MakeTopKCallsIn); }

}  // namespace cpu
