#include "cpu/passes/engine_passes.h"

#include <algorithm>
#include <vector>

#include "cpu/control_flow.h"
#include "cpu/fusible.h"
#include "cpu/library/convolution_problem.h"
#include "cpu/library/dot.h"
#include "cpu/library/epilogue.h"
#include "cpu/passes/composite.h"
#include "passes/for_each_computation.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using Values = std::vector<Instruction*>;

// Contractions that the library does as fast with an epilogue as without: it adds up the parts of
// a gradient of weights at the end, and writes narrow results itself.
bool TakesEpilogue(const Instruction& instruction) {
  if (instruction.opcode() == Opcode::kConvolution) {
    auto problem = RecognizeConvolution(instruction);
    if (!problem || problem->kind == ConvolutionProblem::Kind::kWeightGradient) return false;
  } else if (instruction.opcode() != Opcode::kDotGeneral) {
    return false;
  }
  return instruction.element_type() == hlo::ElementType::kF32 &&
         std::all_of(
             instruction.operands().begin(), instruction.operands().end(),
             [](const Instruction* x) { return x->element_type() == hlo::ElementType::kF32; });
}

bool IsResult(const Instruction& value) {
  const auto& results = value.parent()->results();
  return std::find(results.begin(), results.end(), &value) != results.end();
}

// True if no loop would compute the value on the way to another one.
bool IsKept(const Instruction& value) {
  return IsResult(value) || value.users().size() != 1 || !IsFusible(*value.users()[0]);
}

// What the step needs of its other operand: a broadcast, a constant.
void AddOperands(const Instruction& step, const Instruction* previous, Values& group) {
  for (Instruction* operand : step.operands()) {
    if (operand == previous) continue;
    if (operand->opcode() == Opcode::kBroadcastInDim) {
      if (operand->operand(0)->IsConstant()) group.push_back(operand->operand(0));
      group.push_back(operand);
    } else if (operand->IsConstant()) {
      group.push_back(operand);
    }
  }
}

// The longest epilogue, operands before users, whose last value is kept.
Values FindEpilogue(const Instruction& contraction) {
  Values group, best;
  const Instruction* value = &contraction;
  while (!IsResult(*value) && value->users().size() == 1) {
    Instruction* user = value->users()[0];
    AddOperands(*user, value, group);
    group.push_back(user);
    if (!CanFuseEpilogue(contraction, std::vector<const Instruction*>(group.begin(), group.end())))
      break;
    if (IsKept(*user)) best = group;
    value = user;
  }
  return best;
}

// The conversion of the right operand, if the product does it itself. Where others use the
// converted matrix too, it is there anyway; then what is narrower is read.
Values FindPrologue(const Instruction& contraction) {
  if (contraction.opcode() != Opcode::kDotGeneral || !ReadsThroughConvert(contraction)) return {};
  Instruction* convert = contraction.operand(1);
  const bool is_kept = IsResult(*convert) || convert->users().size() != 1;
  const auto width = [](const Instruction& x) { return hlo::ByteWidth(x.element_type()); };
  if (is_kept && width(*convert->operand(0)) >= width(*convert)) return {};
  return {convert};
}

void Fuse(Instruction* contraction, const Values& prologue, const Values& epilogue) {
  const bool is_dot = contraction->opcode() == Opcode::kDotGeneral;
  Values members = prologue;
  members.push_back(contraction);
  members.insert(members.end(), epilogue.begin(), epilogue.end());
  Instruction* last = members.back();
  const auto replaced = AddComposite(members, {{last}}, is_dot ? kDotCall : kConvolutionCall);
  for (const Replacement& replacement : replaced) {
    replacement.by->set_metadata(contraction->shared_metadata());  // where the time goes
    replacement.value->ReplaceAllUsesWith(replacement.by);
  }
}

bool IsContraction(const Instruction& instruction) {
  const Opcode opcode = instruction.opcode();
  return opcode == Opcode::kDotGeneral || opcode == Opcode::kConvolution;
}

bool FuseAll(Computation& computation) {
  return passes::RewriteEach(computation, IsContraction, [](Instruction* contraction) {
    const Values prologue = FindPrologue(*contraction);
    const Values epilogue = TakesEpilogue(*contraction) ? FindEpilogue(*contraction) : Values();
    if (prologue.empty() && epilogue.empty()) return false;
    Fuse(contraction, prologue, epilogue);
    return true;
  });
}

}  // namespace

bool FuseEpilogues(hlo::Module& module) { return RewriteSteps(module, FuseAll); }

}  // namespace cpu
