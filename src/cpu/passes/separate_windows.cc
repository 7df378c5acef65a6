#include "cpu/control_flow.h"
#include "cpu/passes/engine_passes.h"
#include "cpu/passes/windows.h"
#include "hlo/builder.h"
#include "passes/combiner.h"
#include "passes/for_each_computation.h"
#include "passes/large_windows.h"

namespace cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Whether windows may be combined along one dimension after the other, in any order.
bool IsSeparable(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kReduceWindow || instruction.operand_count() != 2) {
    return false;
  }
  if (!passes::AreLargeWindows(instruction.as<hlo::Window>())) return false;
  const hlo::ElementType type = instruction.element_type();
  // Each dimension's sums would be rounded.
  if (hlo::IsFloat(type) && hlo::ByteWidth(type) < sizeof(float)) return false;
  const auto combiner = passes::CombinerOf(*instruction.called_computations()[0]);
  if (!combiner || !passes::HasIdentity(*combiner, type)) return false;
  // What each dimension starts from must not count twice.
  const Instruction* start = instruction.operand(1);
  return start->IsConstant() && start->literal() == hlo::IdentityLiteral(*combiner, type);
}

bool SeparateWindowsIn(hlo::Computation& computation) {
  return passes::RewriteEach(computation, IsSeparable, [&](Instruction* instruction) {
    hlo::Builder b(&computation);
    b.set_metadata(instruction->shared_metadata());
    Instruction* result = instruction->operand(0);
    for (const hlo::Window& window : OneByOne(instruction->as<hlo::Window>())) {
      result = b.ReduceWindow(result, instruction->operand(1), window,
                              instruction->called_computations()[0]);
    }
    instruction->ReplaceAllUsesWith(result);
    return true;
  });
}

}  // namespace

bool SeparateWindows(hlo::Module& module) { return RewriteSteps(module, SeparateWindowsIn); }

}  // namespace cpu
