#include "cpu/passes/engine_passes.h"

#include <algorithm>

#include "cpu/control_flow.h"
#include "cpu/fusible.h"
#include "hlo/builder.h"
#include "passes/combiner.h"
#include "passes/for_each_computation.h"

namespace cpu {
namespace {

using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using Value = Instruction*;

// Every second element of memory is read by shuffling two vectors, every third one by one.
constexpr int64_t kMostElements = 2;
// Of fewer rows what reduces them is best computed with them, in one kernel.
constexpr int64_t kLeastRows = 1024;

// Whether it runs over the last dimensions, in any order.
bool IsOfLast(const Instruction& reduce) {
  const auto& reduced = reduce.as<hlo::DimensionsAttributes>().dimensions;
  const int64_t kept = reduce.shape().rank();
  return std::ranges::all_of(reduced, [&](int64_t d) { return d >= kept; });
}

// Others do not commute, or give another type.
bool IsSum(const Instruction& reduce) {
  const auto combiner = passes::CombinerOf(*reduce.called_computations()[0]);
  return combiner &&
         (*combiner == Opcode::kXor || passes::HasIdentity(*combiner, reduce.element_type()));
}

bool IsShort(const Instruction& reduce) {
  if (!IsReduction(reduce) || reduce.operand_count() != 2) return false;
  return IsSum(reduce) && IsOfLast(reduce) && reduce.shape().num_elements() >= kLeastRows &&
         reduce.operand(0)->shape().num_elements() <= kMostElements * reduce.shape().num_elements();
}

Value SumOfSlices(hlo::Builder& b, const Instruction& reduce) {
  const Opcode combiner = *passes::CombinerOf(*reduce.called_computations()[0]);
  const ElementType type = reduce.element_type();
  const bool is_narrow = type == ElementType::kF16 || type == ElementType::kBF16;
  const auto widened = [&](Value x) { return is_narrow ? b.Convert(x, ElementType::kF32) : x; };
  const int64_t last = reduce.shape().rank();
  hlo::Dimensions rows = reduce.dimensions();
  rows.push_back(reduce.operand(0)->shape().num_elements() / reduce.shape().num_elements());
  Value x = widened(b.Reshape(reduce.operand(0), rows));
  Value sum = b.BroadcastInDim(widened(reduce.operand(1)), reduce.dimensions(), {});
  for (int64_t i = 0; i < rows.back(); ++i) {
    Value elements = b.Reshape(b.SliceInDim(x, last, i, i + 1), reduce.dimensions());
    sum = b.Binary(combiner, sum, elements);
  }
  return is_narrow ? b.Convert(sum, type) : sum;
}

bool ExpandReductionsIn(hlo::Computation& computation) {
  return passes::RewriteEach(computation, IsShort, [&](Instruction* reduce) {
    hlo::Builder b(&computation);
    b.set_metadata(reduce->shared_metadata());
    reduce->ReplaceAllUsesWith(SumOfSlices(b, *reduce));
    return true;
  });
}

}  // namespace

bool ExpandShortReductions(hlo::Module& module) { return RewriteSteps(module, ExpandReductionsIn); }

}  // namespace cpu
