#include "passes/passes.h"

#include <algorithm>
#include <ranges>
#include <unordered_set>

#include "hlo/builder.h"
#include "passes/inline_where.h"

namespace passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool IsUsed(const Instruction& value) {
  const auto& results = value.parent()->results();
  return !value.users().empty() || std::ranges::find(results, &value) != results.end();
}

// A value of a shape that stands for a parameter nobody reads.
Instruction* Placeholder(Computation& computation, const hlo::Shape& shape) {
  if (!shape.is_array()) return computation.Add(Opcode::kAfterAll, hlo::Shape::Token(), {});
  return hlo::Builder(&computation).Zeros(shape);
}

// A copy of `source` with those parameters, and (for a loop's body) those results, that are needed.
Computation* CopyNeeded(const Computation& source, const std::vector<bool>& parameters,
                        const std::vector<bool>& results) {
  Computation* copy = source.module()->AddComputation(source.name());
  std::vector<Instruction*> arguments;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const hlo::Shape& shape = source.parameter(i)->shape();
    if (!parameters[i]) {
      arguments.push_back(Placeholder(*copy, shape));
      continue;
    }
    auto number = static_cast<int64_t>(copy->parameters().size());
    arguments.push_back(copy->Add(Opcode::kParameter, shape, {}, hlo::ParameterAttributes{number}));
  }
  std::vector<Instruction*> all = hlo::InlineComputation(source, *copy, arguments);
  std::vector<Instruction*> kept;
  for (size_t i = 0; i < all.size(); ++i) {
    if (results[i]) kept.push_back(all[i]);
  }
  copy->set_results(std::move(kept));
  copy->RemoveDeadInstructions();
  return copy;
}

// Marks what each of `roots` depends on inside one computation.
class Reach {
 public:
  explicit Reach(const Computation& computation) : computation_(computation) {}

  void Mark(const Instruction* root) {
    std::vector<const Instruction*> stack = {root};
    while (!stack.empty()) {
      const Instruction* value = stack.back();
      stack.pop_back();
      if (!visited_.insert(value).second) continue;
      stack.insert(stack.end(), value->operands().begin(), value->operands().end());
    }
  }

  void MarkSideEffects() {
    for (const auto& instruction : computation_.instructions()) {
      if (instruction->HasSideEffect()) Mark(instruction.get());
    }
  }

  bool Reaches(size_t parameter) const {
    return visited_.contains(computation_.parameter(parameter));
  }

 private:
  const Computation& computation_;
  std::unordered_set<const Instruction*> visited_;
};

// Which loop-carried values matter: to the condition, to the user of the loop, to side effects, or
// to another that matters.
std::vector<bool> NeededByLoop(const Instruction& loop) {
  const Computation& condition = *loop.called_computations()[0];
  const Computation& body = *loop.called_computations()[1];
  size_t count = loop.operand_count();
  std::vector<bool> needed(count, !loop.shape().is_tuple());
  for (const Instruction* user : loop.users()) {
    bool is_element = user->opcode() == Opcode::kGetTupleElement;
    for (size_t i = 0; i < count; ++i) {
      if (!is_element || user->tuple_index() == static_cast<int64_t>(i)) needed[i] = true;
    }
  }
  Reach in_condition(condition), in_body(body);
  in_condition.Mark(condition.result());
  in_condition.MarkSideEffects();
  in_body.MarkSideEffects();
  bool changed = true;
  std::vector<bool> marked(count, false);
  while (changed) {
    changed = false;
    for (size_t i = 0; i < count; ++i) {
      if (!needed[i] && (in_condition.Reaches(i) || in_body.Reaches(i))) needed[i] = true;
      if (!needed[i] || marked[i]) continue;
      marked[i] = changed = true;
      in_body.Mark(body.result(i));
    }
  }
  return needed;
}

bool ShrinkLoop(Instruction& loop) {
  std::vector<bool> needed = NeededByLoop(loop);
  auto kept = std::ranges::count(needed, true);
  if (kept == std::ssize(needed) || kept == 0) return false;
  std::vector<Instruction*> operands;
  std::vector<hlo::Shape> shapes;
  for (size_t i = 0; i < needed.size(); ++i) {
    if (!needed[i]) continue;
    operands.push_back(loop.operand(i));
    shapes.push_back(loop.operand(i)->shape());
  }
  Computation* condition = CopyNeeded(*loop.called_computations()[0], needed, {true});
  Computation* body = CopyNeeded(*loop.called_computations()[1], needed, needed);
  hlo::Builder builder(loop.parent());
  builder.set_metadata(loop.shared_metadata());
  Instruction* smaller = builder.While(operands, condition, body);
  std::vector<Instruction*> results(needed.size(), nullptr);
  for (size_t i = 0, k = 0; i < needed.size(); ++i) {
    if (needed[i]) results[i] = builder.Result(smaller, static_cast<int64_t>(k++));
  }
  ReplaceResults(loop, results);
  loop.parent()->Remove(&loop);
  return true;
}

bool ShrinkBranches(Instruction& branches) {
  size_t count = branches.operand_count() - 1;
  std::vector<bool> needed(count, false);
  for (const Computation* branch : branches.called_computations()) {
    for (size_t i = 0; i < count; ++i) {
      if (IsUsed(*branch->parameter(i))) needed[i] = true;
    }
  }
  if (std::ranges::find(needed, false) == needed.end()) return false;
  std::vector<Instruction*> operands = {branches.operand(0)};
  for (size_t i = 0; i < count; ++i) {
    if (needed[i]) operands.push_back(branches.operand(i + 1));
  }
  std::vector<Computation*> called;
  for (const Computation* branch : branches.called_computations()) {
    called.push_back(
        CopyNeeded(*branch, needed, std::vector<bool>(branch->results().size(), true)));
  }
  Computation& computation = *branches.parent();
  Instruction* smaller = computation.Add(branches.opcode(), branches.shape(), std::move(operands),
                                         branches.shared_attributes(), std::move(called));
  smaller->set_metadata(branches.shared_metadata());
  branches.ReplaceAllUsesWith(smaller);
  computation.Remove(&branches);
  return true;
}

bool Shrink(Computation& computation) {
  std::vector<Instruction*> found;
  for (const auto& instruction : computation.instructions()) {
    Opcode opcode = instruction->opcode();
    if (opcode == Opcode::kWhile || opcode == Opcode::kIf || opcode == Opcode::kCase) {
      found.push_back(instruction.get());
    }
  }
  bool changed = false;
  // Users first: what they no longer use may die in what they used.
  for (Instruction* instruction : found | std::views::reverse) {
    changed |= instruction->opcode() == Opcode::kWhile ? ShrinkLoop(*instruction)
                                                       : ShrinkBranches(*instruction);
  }
  if (changed) {
    computation.RemoveDeadInstructions();
    computation.SortTopologically();
  }
  return changed;
}

}  // namespace

bool EliminateDeadCode(hlo::Module& module) {
  bool changed = false;
  // Callers before callees. Shrinking adds computations at the end, which are clean themselves but
  // may call others with something to shrink.
  constexpr int kMaxRounds = 4;
  for (int round = 0; round < kMaxRounds; ++round) {
    size_t count = module.computations().size();
    bool shrunk = false;
    for (size_t i = count; i-- > 0;) {
      Computation& computation = *module.computations()[i];
      changed |= computation.RemoveDeadInstructions() > 0;
      shrunk |= Shrink(computation);
    }
    module.RemoveUnreachableComputations();
    changed |= shrunk || module.computations().size() != count;
    if (!shrunk) break;
    module.SortComputations();
  }
  return changed;
}

}  // namespace passes
