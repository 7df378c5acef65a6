#include "cpu/passes/engine_passes.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cpu/control_flow.h"
#include "hlo/builder.h"
#include "passes/combiner.h"
#include "passes/constant_value.h"
#include "passes/for_each_computation.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

const Computation& ConditionOf(const Instruction& loop) { return *loop.called_computations()[0]; }
const Computation& BodyOf(const Instruction& loop) { return *loop.called_computations()[1]; }

// The number of the mask in the loop's state, if the loop goes on while any element of it is set,
// and its condition computes nothing else.
std::optional<int64_t> MaskOf(const Computation& condition) {
  const Instruction* any = condition.result();
  if (any->opcode() != Opcode::kReduce || !any->shape().is_scalar()) return std::nullopt;
  const auto belongs_to_it = [&](const auto& i) {
    return i->opcode() == Opcode::kParameter || i.get() == any || i.get() == any->operand(1);
  };
  if (!std::ranges::all_of(condition.instructions(), belongs_to_it)) return std::nullopt;
  const Instruction* mask = any->operand(0);
  if (mask->opcode() != Opcode::kParameter || mask->element_type() != hlo::ElementType::kPred ||
      passes::CombinerOf(*any->called_computations()[0]) != Opcode::kOr ||
      passes::NumberOf(any->operand(1)) != 0.0) {
    return std::nullopt;
  }
  return mask->parameter_number();
}

// Where the mask is not set, these predicates are not: the mask, and what is made of it with `and`.
std::unordered_set<const Instruction*> WithinMask(const Computation& body, int64_t mask) {
  std::unordered_set<const Instruction*> within = {body.parameter(mask)};
  for (const auto& instruction : body.instructions()) {
    if (instruction->opcode() != Opcode::kAnd) continue;
    if (std::ranges::any_of(instruction->operands(),
                            [&](const Instruction* x) { return within.contains(x); })) {
      within.insert(instruction.get());
    }
  }
  return within;
}

// Whether an element that the mask lacks stays as it is, and out of the mask.
bool LeavesOthers(const Computation& body, int64_t mask) {
  const auto within = WithinMask(body, mask);
  for (size_t i = 0; i < body.results().size(); ++i) {
    const Instruction *before = body.parameter(i), *next = body.result(i);
    if (next == before || (before == body.parameter(mask) && within.contains(next))) continue;
    const bool is_selected = next->opcode() == Opcode::kSelect &&
                             within.contains(next->operand(0)) && next->operand(2) == before;
    if (!is_selected) return false;
  }
  return true;
}

// Whether it gives each element from those at the same place, and from scalars.
bool IsElementwise(const Instruction& instruction, const hlo::Dimensions& space) {
  if (!instruction.shape().is_array() || !hlo::IsNative(instruction.element_type())) return false;
  if (instruction.shape().rank() != 0 && instruction.dimensions() != space) return false;
  switch (instruction.opcode()) {
    case Opcode::kParameter:
      return true;
    case Opcode::kConstant:
      return instruction.literal().IsSplat();
    case Opcode::kBroadcastInDim:
      return instruction.operand(0)->shape().rank() == 0;
    default:
      return hlo::IsElementwise(instruction.opcode());
  }
}

// The only result that is read; none if there are several.
std::optional<int64_t> ResultOf(const Instruction& loop) {
  std::optional<int64_t> result;
  const auto& given_back = loop.parent()->results();
  if (std::ranges::find(given_back, &loop) != given_back.end()) return std::nullopt;
  for (const Instruction* user : loop.users()) {
    if (user->opcode() != Opcode::kGetTupleElement) return std::nullopt;
    if (result.value_or(user->tuple_index()) != user->tuple_index()) return std::nullopt;
    result = user->tuple_index();
  }
  return result;
}

bool IsOfElements(const Instruction& loop) {
  if (loop.opcode() != Opcode::kWhile || !loop.shape().is_tuple()) return false;
  const std::optional<int64_t> result = ResultOf(loop), mask = MaskOf(ConditionOf(loop));
  if (!result || !mask) return false;
  const Computation& body = BodyOf(loop);
  const hlo::Dimensions& space = body.parameter(*mask)->dimensions();
  // A scalar of the state is the same for all elements, and so in all turns.
  const auto fits = [&](const Instruction* state) {
    return state->shape().is_array() &&
           (state->dimensions() == space || body.result(state->parameter_number()) == state);
  };
  return !space.empty() && body.parameter(*result)->dimensions() == space &&
         std::ranges::all_of(body.parameters(), fits) &&
         std::ranges::all_of(body.instructions(),
                             [&](const auto& i) { return IsElementwise(*i, space); }) &&
         LeavesOthers(body, *mask);
}

// The same for one element; `any` of one is that one.
Computation* OfOneElement(const Computation& whole) {
  Computation* one = whole.module()->AddComputation(whole.name());
  std::unordered_map<const Instruction*, Instruction*> copies;
  for (const auto& instruction : whole.instructions()) {
    Instruction*& copy = copies[instruction.get()];
    if (instruction->opcode() == Opcode::kBroadcastInDim ||
        instruction->opcode() == Opcode::kReduce) {
      copy = copies[instruction->operand(0)];
    } else if (instruction->IsConstant()) {
      copy = hlo::Builder(one).Constant(*passes::SplatOf(instruction.get()));
    } else {
      std::vector<Instruction*> operands;
      for (const Instruction* operand : instruction->operands()) {
        operands.push_back(copies[operand]);
      }
      copy = one->Add(instruction->opcode(), hlo::Shape::Scalar(instruction->element_type()),
                      std::move(operands), instruction->attributes());
    }
  }
  std::vector<Instruction*> results;
  for (const Instruction* result : whole.results()) results.push_back(copies[result]);
  one->set_results(std::move(results));
  return one;
}

bool BecomeMap(Instruction* loop) {
  if (!IsOfElements(*loop)) return false;
  const int64_t result = *ResultOf(*loop);
  const hlo::Dimensions space = loop->shape().tuple_shapes()[result].dimensions();
  Computation *condition = OfOneElement(ConditionOf(*loop)), *body = OfOneElement(BodyOf(*loop));
  Computation* element = loop->parent()->module()->AddComputation("element_loop");
  hlo::Builder inside(element), b(loop->parent());
  std::vector<Instruction*> parameters, operands;
  for (Instruction* operand : loop->operands()) {
    parameters.push_back(inside.Parameter(hlo::Shape::Scalar(operand->element_type())));
    const bool is_scalar = operand->shape().rank() == 0;
    operands.push_back(is_scalar ? b.BroadcastInDim(operand, space, {}) : operand);
  }
  Instruction* turns = inside.While(parameters, condition, body);
  element->set_results({inside.GetTupleElement(turns, result)});
  b.set_metadata(loop->shared_metadata());
  hlo::Dimensions all(space.size());
  std::iota(all.begin(), all.end(), 0);
  Instruction* map = b.Create(Opcode::kMap, operands, hlo::DimensionsAttributes{all}, {element});
  const std::vector<Instruction*> users = loop->users();
  for (Instruction* user : users) user->ReplaceAllUsesWith(map);
  return true;
}

bool MakeIn(Computation& computation) {
  const auto is_loop = [](const Instruction& i) { return i.opcode() == Opcode::kWhile; };
  return passes::RewriteEach(computation, is_loop, BecomeMap);
}

}  // namespace

bool MakeElementLoops(hlo::Module& module) { return RewriteSteps(module, MakeIn); }

}  // namespace cpu
