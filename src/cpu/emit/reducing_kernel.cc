#include "cpu/emit/reducing_kernel.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cpu/element_cost.h"
#include "hlo/builder.h"
#include "passes/combiner.h"

namespace cpu {

using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// So many terms one after the other at most, and as many sums of them: a sum of n equal numbers
// would lose them where it is 2^24 of them, and be wrong by n / 2^25 long before.
constexpr int64_t kTermsOfABlock = 256;
// Inner loops of more turns have sums of their own.
constexpr int64_t kTurnsOfASum = 32;

bool IsSum(const ReductionPlan& plan) {
  return plan.types.size() == 1 && plan.types[0] != ElementType::kPred &&
         !hlo::IsInteger(plan.types[0]) && passes::CombinerOf(*plan.combiner) == Opcode::kAdd;
}

}  // namespace

ReductionPlan ReducingKernel::PlanReduction(const Instruction* reduce) {
  ReductionPlan plan;
  plan.reduce = reduce;
  plan.combiner = reduce->called_computations()[0];
  const size_t count = reduce->operand_count() / 2;
  for (size_t i = 0; i < count; ++i) plan.types.push_back(reduce->operand(i)->element_type());
  std::vector<Element> init;
  for (size_t i = 0; i < count; ++i) {
    init.push_back(emitter_.Evaluate(reduce->operand(count + i), {}).element);
  }
  plan.initial = init;
  // A plain operation starts from its identity; others from their initial values, which have to
  // be one.
  const auto combiner = count == 1 ? passes::CombinerOf(*plan.combiner) : std::nullopt;
  if (!combiner) return plan;
  const Opcode identity_of = *combiner == Opcode::kXor ? Opcode::kOr : *combiner;
  if (!passes::HasIdentity(identity_of, plan.types[0])) return plan;
  const hlo::Literal identity = hlo::IdentityLiteral(identity_of, plan.types[0]);
  plan.initial = {emitter_.elementwise().Constant(identity, 0)};
  const bool same =
      plan.initial[0].real == init[0].real && plan.initial[0].imaginary == init[0].imaginary;
  if (!same) plan.init = init;
  return plan;
}

void ReducingKernel::Flatten(const std::vector<Element>& elements, Accumulators& out) {
  for (const Element& element : elements) {
    out.push_back(element.real);
    if (element.imaginary) out.push_back(element.imaginary);
  }
}
std::vector<Element> ReducingKernel::Take(const std::vector<ElementType>& types,
                                          const Accumulators& values, size_t& position) {
  std::vector<Element> elements;
  for (ElementType type : types) {
    Element element;
    element.real = values[position++];
    if (hlo::IsComplex(type)) element.imaginary = values[position++];
    elements.push_back(element);
  }
  return elements;
}

std::vector<Element> ReducingKernel::Combine(const ReductionPlan& plan, std::vector<Element> left,
                                             const std::vector<Element>& right) {
  left.insert(left.end(), right.begin(), right.end());
  emitter_.AtInnermost();
  emitter_.Widen(left);
  emitter_.set_round(false);
  std::vector<Element> result = emitter_.Apply(*plan.combiner, left);
  emitter_.set_round(true);
  return result;
}

void ReducingKernel::Accumulate(const ReductionPlan& plan, const Index& index,
                                std::vector<Element>& accumulators) {
  std::vector<Element> inputs;
  for (size_t i = 0; i < plan.types.size(); ++i) {
    inputs.push_back(emitter_.Evaluate(plan.reduce->operand(i), index).element);
  }
  std::vector<Element> combined = Combine(plan, accumulators, inputs);
  if (llvm::Value* mask = emitter_.mask().value) {
    emitter_.AtInnermost();
    for (size_t i = 0; i < combined.size(); ++i) {
      combined[i].real = b_.CreateSelect(mask, combined[i].real, accumulators[i].real);
      if (combined[i].imaginary) {
        combined[i].imaginary =
            b_.CreateSelect(mask, combined[i].imaginary, accumulators[i].imaginary);
      }
    }
  }
  accumulators = combined;
}

std::vector<Element> ReducingKernel::AcrossLanes(const ReductionPlan& plan,
                                                 std::vector<Element> elements) {
  if (lanes_ == 1) return elements;
  emitter_.AtInnermost();
  for (int step = lanes_ / 2; step >= 1; step /= 2) {
    std::vector<int> shift;
    for (int i = 0; i < lanes_; ++i) shift.push_back(i < step ? i + step : llvm::PoisonMaskElem);
    std::vector<Element> moved = elements;
    for (Element& element : moved) {
      element.real = b_.CreateShuffleVector(element.real, shift);
      if (element.imaginary) element.imaginary = b_.CreateShuffleVector(element.imaginary, shift);
    }
    elements = Combine(plan, elements, moved);
  }
  for (Element& element : elements) {
    element.real = b_.CreateExtractElement(element.real, uint64_t{0});
    if (element.imaginary)
      element.imaginary = b_.CreateExtractElement(element.imaginary, uint64_t{0});
  }
  return elements;
}

std::vector<Element> ReducingKernel::Finish(const ReductionPlan& plan,
                                            std::vector<Element> elements) {
  if (!plan.init.empty()) elements = Combine(plan, plan.init, elements);
  emitter_.AtInnermost();
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!hlo::IsComplex(plan.types[i])) {
      elements[i].real = emitter_.elementwise().Round(elements[i].real, plan.types[i]);
    }
  }
  return elements;
}

// Independent sums hide the latency of additions where little else is done.
int ReducingKernel::Unroll(const Extent& columns) {
  int64_t work = 0;
  for (const auto& instruction : body_.instructions()) {
    if (ReducesInOrder(*instruction)) return 1;
    work += IsExpensive(*instruction) ? 100 : instruction->opcode() != Opcode::kConstant;
  }
  const bool is_light = work <= 16 && cache_.empty();
  return is_light && !emitter_.IsLess(columns, 8 * lanes_) ? 4 : 1;
}

Accumulators ReducingKernel::Reduced(
    const std::vector<ReductionPlan>& plans, int sets,
    const std::function<Accumulators(const Accumulators&)>& reduce) {
  emitter_.AtInnermost();
  start_.clear();
  for (const ReductionPlan& plan : plans) {
    std::vector<Element> wide = plan.initial;
    emitter_.Widen(wide, true);
    Flatten(wide, start_);
  }
  Accumulators initial;
  for (int i = 0; i < sets; ++i) initial.insert(initial.end(), start_.begin(), start_.end());
  if (std::ranges::any_of(plans, IsSum)) plans_ = &plans;
  Accumulators sums = reduce(initial);
  plans_ = nullptr;
  return sums;
}

Accumulators ReducingKernel::Apart(const Accumulators& accumulators,
                                   const std::function<Accumulators(const Accumulators&)>& reduce) {
  Accumulators begin = accumulators;
  for (size_t position = 0; position < begin.size();) {
    for (const ReductionPlan& plan : *plans_) {
      Accumulators mine;
      Flatten(plan.initial, mine);
      for (size_t i = 0; i < mine.size(); ++i, ++position) {
        if (IsSum(plan)) begin[position] = start_[position % start_.size()];
      }
    }
  }
  const Accumulators parts = reduce(begin);
  Accumulators result;
  size_t before = 0, after = 0;
  while (before < accumulators.size()) {
    for (const ReductionPlan& plan : *plans_) {
      std::vector<Element> total = Take(plan.types, accumulators, before);
      const std::vector<Element> part = Take(plan.types, parts, after);
      Flatten(IsSum(plan) ? Combine(plan, std::move(total), part) : part, result);
    }
  }
  return result;
}

Accumulators ReducingKernel::Blocks(llvm::Value* begin, llvm::Value* end, int64_t step, int depth,
                                    const Accumulators& accumulators, const LoopBody& body) {
  if (depth == 0) return emitter_.Loop(begin, end, step, accumulators, body);
  int64_t span = step;
  for (int i = 0; i < depth; ++i) span *= kTermsOfABlock;
  return emitter_.Loop(
      begin, end, span, accumulators, [&](llvm::Value* first, const Accumulators& current) {
        emitter_.AtInnermost();
        llvm::Value* next = b_.CreateAdd(first, b_.getInt64(span));
        llvm::Value* last = b_.CreateSelect(b_.CreateICmpSLT(next, end), next, end);
        return Apart(current, [&](const Accumulators& sums) {
          return Blocks(first, last, step, depth - 1, sums, body);
        });
      });
}

Accumulators ReducingKernel::NestLoop(llvm::Value* begin, llvm::Value* end, int64_t step,
                                      const Extent& count, const Accumulators& accumulators,
                                      const LoopBody& body) {
  // A number of turns that varies is not asked for its size: another one would be another kernel.
  const int64_t turns = count.varies ? std::numeric_limits<int64_t>::max() : count.value;
  int depth = 0;
  if (plans_ != nullptr && turns > kTermsOfABlock) {
    depth = turns > kTermsOfABlock * kTermsOfABlock ? 2 : 1;
  }
  return Blocks(begin, end, step, depth, accumulators, body);
}

Accumulators ReducingKernel::NestTurn(
    const Extent& count, const Accumulators& accumulators,
    const std::function<Accumulators(const Accumulators&)>& turn) {
  const bool are_few = !count.varies && count.value <= kTurnsOfASum;
  if (plans_ == nullptr || are_few) return turn(accumulators);
  return Apart(accumulators, turn);
}

void ReducingKernel::ReduceRow(const std::vector<const Instruction*>& reduces,
                               const Index& row_index, const std::vector<Run>& columns) {
  std::vector<ReductionPlan> plans;
  for (const Instruction* reduce : reduces) plans.push_back(PlanReduction(reduce));
  const int unroll = Unroll(columns.back().size);
  const NestBody add = [&](const Index& index, const Accumulators& current) {
    Accumulators next;
    size_t position = 0;
    for (const ReductionPlan& plan : plans) {
      auto mine = Take(plan.types, current, position);
      Accumulate(plan, index, mine);
      Flatten(mine, next);
    }
    return next;
  };
  Accumulators sums = Reduced(plans, unroll, [&](const Accumulators& initial) {
    return Columns(columns, row_index, initial, unroll, add);
  });
  cache_.EndPass();
  size_t position = 0;
  std::vector<std::vector<Element>> totals;
  for (int u = 0; u < unroll; ++u) {
    for (size_t i = 0; i < plans.size(); ++i) {
      auto part = Take(plans[i].types, sums, position);
      if (u == 0) {
        totals.push_back(part);
      } else {
        totals[i] = Combine(plans[i], totals[i], part);
      }
    }
  }
  for (size_t i = 0; i < plans.size(); ++i) {
    BindReduce(plans[i], Finish(plans[i], AcrossLanes(plans[i], totals[i])));
  }
}

void ReducingKernel::BindReduce(const ReductionPlan& plan, const std::vector<Element>& values) {
  emitter_.Bind(plan.reduce, values);
  for (const Instruction* user : plan.reduce->users()) {
    if (user->opcode() == Opcode::kGetTupleElement)
      emitter_.Bind(user, {values[user->tuple_index()]});
  }
}

Accumulators ReducingKernel::Columns(const std::vector<Run>& columns, const Index& row_index,
                                     Accumulators initial, int unroll, const NestBody& body) {
  std::vector<Run> outer(columns.begin(), columns.end() - 1);
  const NestBody lanes = [&](const Index& unsorted, const Accumulators& current) {
    Index inner = unsorted;
    if (reorder_) SortGroups(inner);
    if (cache_.empty()) return body(inner, current);
    return cache_.Through(inner, columns, current, body);
  };
  const Extent turns = columns.back().size / (lanes_ * unroll);
  return ScalarNest(outer, 0, row_index, initial,
                    [&](const Index& index, const Accumulators& current) {
                      const auto row = [&](const Accumulators& sums) {
                        return LaneLoop(columns.back(), index, sums, unroll, lanes);
                      };
                      return outer.empty() ? row(current) : NestTurn(turns, current, row);
                    });
}

}  // namespace cpu
