#include "cpu/pipeline.h"

#include <algorithm>

#include "cpu/dimension_sizes.h"
#include "cpu/expand_empty.h"
#include "cpu/expand_random.h"
#include "cpu/expand_select_and_scatter.h"
#include "cpu/fuse_epilogues.h"
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
using hlo::Module;

template <void (*pass)(Computation&)>
void Each(Module& module) {
  std::vector<Computation*> computations;
  for (const auto& computation : module.computations()) computations.push_back(computation.get());
  for (Computation* computation : computations) pass(*computation);
}

const Pass kCleanUp[] = {
    {"simplify", [](Module& m) { passes::Simplify(m); }},
    {"fold_constants", [](Module& m) { passes::FoldConstants(m); }},
    {"common_subexpressions", [](Module& m) { passes::EliminateCommonSubexpressions(m); }},
    {"dead_code", [](Module& m) { passes::EliminateDeadCode(m); }},
};

void UseChannelsLast(Module& module) {
  if (!passes::UseChannelsLast(module)) return;
  for (const Pass& pass : kCleanUp) pass.run(module);
}

// Fuses the computations whose instructions become steps: the entry and the regions of control
// flow.
template <void (*pass)(Computation&)>
void EachOfSteps(Module& module) {
  std::vector<Computation*> steps, pending = {module.entry()};
  while (!pending.empty()) {
    Computation* computation = pending.back();
    pending.pop_back();
    if (std::find(steps.begin(), steps.end(), computation) != steps.end()) continue;
    steps.push_back(computation);
    for (const auto& instruction : computation->instructions()) {
      switch (instruction->opcode()) {
        case hlo::Opcode::kWhile:
        case hlo::Opcode::kIf:
        case hlo::Opcode::kCase:
          for (Computation* called : instruction->called_computations()) pending.push_back(called);
          break;
        default:
          break;
      }
    }
  }
  for (Computation* computation : steps) pass(*computation);
  module.RemoveUnreachableComputations();
  module.SortComputations();
}

}  // namespace

std::vector<Pass> Pipeline(bool single_device) {
  std::vector<Pass> passes;
  const auto add = [&](Pass pass) { passes.push_back(pass); };
  const auto clean_up = [&] {
    passes.insert(passes.end(), std::begin(kCleanUp), std::end(kCleanUp));
  };
  add({"expand_composites", [](Module& m) {
         passes::ExpandComposites(m, [](const Instruction& c) { return IsFusible(c); });
       }});
  add({"inline_calls", [](Module& m) { passes::InlineCalls(m); }});
  add({"expand_batch_norm", [](Module& m) {
         passes::ExpandBatchNorm(m);
         m.RemoveUnreachableComputations();
       }});
  if (single_device) add({"single_device", Each<ResolveSingleDevice>});
  add({"dimension_sizes", Each<ResolveDimensionSizes>});
  add({"expand_empty", Each<ExpandEmpty>});
  clean_up();
  add({"fold_reverse_into_convolution", [](Module& m) { passes::FoldReverseIntoConvolution(m); }});
  add({"join_sums_of_dots", [](Module& m) { passes::JoinSumsOfDots(m); }});
  add({"convolution_layout", UseChannelsLast});
  add({"expand_select_and_scatter", Each<ExpandSelectAndScatter>});
  add({"expand_random", Each<ExpandRandom>});
  clean_up();
  add({"split_reductions", [](Module& m) {
         Each<SplitReductions>(m);
         m.SortComputations();
       }});
  add({"fuse_epilogues", EachOfSteps<FuseEpilogues>});
  add({"fuse_loops", EachOfSteps<FuseLoops>});
  return passes;
}

void RunPipeline(Module& module, bool single_device) {
  for (const Pass& pass : Pipeline(single_device)) pass.run(module);
}

}  // namespace cpu
