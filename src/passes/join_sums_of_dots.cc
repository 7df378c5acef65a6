#include "passes/passes.h"

#include <algorithm>

#include "hlo/builder.h"

namespace passes {
namespace {

using hlo::DotAttributes;
using hlo::Instruction;
using hlo::Opcode;
using Values = std::vector<Instruction*>;

bool IsSumOf(const Instruction& instruction, const Instruction& term) {
  return instruction.opcode() == Opcode::kAdd && instruction.shape() == term.shape();
}

// An addition that is not itself a term of a larger sum.
bool IsRoot(const Instruction& add) {
  return add.opcode() == Opcode::kAdd && hlo::IsFloat(add.element_type()) &&
         !(add.users().size() == 1 && IsSumOf(*add.users()[0], add));
}

// The terms of a sum, from left to right: additions inside that are used elsewhere count as terms.
Values Terms(Instruction* root) {
  Values terms, stack = {root};
  while (!stack.empty()) {
    Instruction* value = stack.back();
    stack.pop_back();
    if (value == root || (IsSumOf(*value, *root) && value->users().size() == 1)) {
      stack.push_back(value->operand(1));
      stack.push_back(value->operand(0));
    } else {
      terms.push_back(value);
    }
  }
  return terms;
}

bool IsPlainDot(const Instruction& value) {
  if (value.opcode() != Opcode::kDotGeneral || value.users().size() != 1) return false;
  const auto& attributes = value.as<DotAttributes>();
  return attributes.lhs_batching_dimensions.empty() &&
         attributes.lhs_contracting_dimensions.size() == 1;
}

// May stand in one product: equal but for the length of the contracted dimension.
bool Match(const Instruction& a, const Instruction& b) {
  if (a.attributes() != b.attributes() || a.shape() != b.shape()) return false;
  for (int side : {0, 1}) {
    if (a.operand(side)->element_type() != b.operand(side)->element_type()) return false;
  }
  return true;
}

int64_t OperandBytes(const Instruction& dot) {
  return dot.operand(0)->shape().byte_size() + dot.operand(1)->shape().byte_size();
}

// Each term saved is written once and read once; joined operands are read and written once more.
bool IsWorthwhile(const Values& dots) {
  int64_t copied = 0, saved = 0;
  for (const Instruction* dot : dots) {
    copied += 2 * OperandBytes(*dot);
    saved += 2 * dot->shape().byte_size();
  }
  return dots.size() > 1 && copied < saved;
}

Instruction* Join(hlo::Builder& builder, const Values& dots) {
  const auto& attributes = dots[0]->as<DotAttributes>();
  Values lhs, rhs;
  for (Instruction* dot : dots) {
    lhs.push_back(dot->operand(0));
    rhs.push_back(dot->operand(1));
  }
  return builder.DotGeneral(builder.Concatenate(lhs, attributes.lhs_contracting_dimensions[0]),
                            builder.Concatenate(rhs, attributes.rhs_contracting_dimensions[0]),
                            attributes, dots[0]->element_type());
}

bool Rewrite(hlo::Computation& computation, Instruction* root) {
  Values terms = Terms(root), others;
  std::vector<Values> groups;
  for (Instruction* term : terms) {
    if (!IsPlainDot(*term)) {
      others.push_back(term);
      continue;
    }
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Values& dots) { return Match(*dots[0], *term); });
    if (group == groups.end()) {
      groups.push_back({term});
    } else {
      group->push_back(term);
    }
  }
  hlo::Builder builder(&computation);
  bool changed = false;
  Values sums;
  for (const Values& dots : groups) {
    if (IsWorthwhile(dots)) {
      sums.push_back(Join(builder, dots));
      changed = true;
    } else {
      sums.insert(sums.end(), dots.begin(), dots.end());
    }
  }
  if (!changed) return false;
  sums.insert(sums.end(), others.begin(), others.end());
  Instruction* total = sums[0];
  for (size_t i = 1; i < sums.size(); ++i) total = builder.Add(total, sums[i]);
  root->ReplaceAllUsesWith(total);
  return true;
}

}  // namespace

bool JoinSumsOfDots(hlo::Module& module) {
  bool changed = false;
  for (const auto& computation : module.computations()) {
    Values roots;
    for (const auto& instruction : computation->instructions()) {
      if (IsRoot(*instruction)) roots.push_back(instruction.get());
    }
    bool rewritten = false;
    for (Instruction* root : roots) rewritten |= Rewrite(*computation, root);
    if (!rewritten) continue;
    computation->SortTopologically();
    computation->RemoveDeadInstructions();
    changed = true;
  }
  return changed;
}

}  // namespace passes
