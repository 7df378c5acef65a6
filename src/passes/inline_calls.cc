#include "passes/passes.h"

#include "passes/inline_where.h"

namespace passes {

bool InlineCalls(hlo::Module& module) {
  return InlineWhere(module, [](const hlo::Instruction& instruction) {
    return instruction.opcode() == hlo::Opcode::kCall;
  });
}

}  // namespace passes
