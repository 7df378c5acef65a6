#include "passes/passes.h"

#include "passes/inline_where.h"

namespace passes {

bool ExpandComposites(hlo::Module& module,
                      const std::function<bool(const hlo::Instruction& composite)>& keep) {
  return InlineWhere(module, [&](const hlo::Instruction& instruction) {
    return instruction.opcode() == hlo::Opcode::kComposite && !(keep && keep(instruction));
  });
}

}  // namespace passes
