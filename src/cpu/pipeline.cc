#include "cpu/prepare.h"

#include <vector>

#include "cpu/dimension_sizes.h"
#include "cpu/expand_empty.h"
#include "cpu/expand_random.h"
#include "cpu/expand_select_and_scatter.h"
#include "cpu/fusion.h"
#include "cpu/single_device.h"
#include "cpu/split_reductions.h"
#include "passes/common_subexpressions.h"
#include "passes/convolution_layout.h"
#include "passes/dead_code.h"
#include "passes/expand_batch_norm.h"
#include "passes/expand_composites.h"
#include "passes/fold_constants.h"
#include "passes/fold_reverse_into_convolution.h"
#include "passes/inline_calls.h"
#include "passes/join_sums_of_dots.h"
#include "passes/simplify.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Instruction;

void Simplify(hlo::Module& module) {
  passes::Simplify(module);
  passes::FoldConstants(module);
  passes::EliminateCommonSubexpressions(module);
  passes::EliminateDeadCode(module);
}

}  // namespace

void Prepare(hlo::Module& module, bool single_device) {
  passes::ExpandComposites(module,
                           [](const Instruction& composite) { return IsFusible(composite); });
  passes::InlineCalls(module);
  passes::ExpandBatchNorm(module);
  module.RemoveUnreachableComputations();
  auto each = [&](void (*pass)(Computation&)) {
    std::vector<Computation*> computations;
    for (const auto& computation : module.computations()) computations.push_back(computation.get());
    for (Computation* computation : computations) pass(*computation);
  };
  if (single_device) each(ResolveSingleDevice);
  each(ResolveDimensionSizes);
  each(ExpandEmpty);
  Simplify(module);
  passes::FoldReverseIntoConvolution(module);
  passes::JoinSumsOfDots(module);
  if (passes::UseChannelsLast(module)) Simplify(module);
  each(ExpandSelectAndScatter);
  each(ExpandRandom);
  Simplify(module);
  each(SplitReductions);
  module.SortComputations();
}

}  // namespace cpu
