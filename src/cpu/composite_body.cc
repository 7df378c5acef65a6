#include "cpu/composite_body.h"

#include <unordered_set>
#include <utility>

namespace cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

void AddParameter(CompositeBody& body, Instruction* value) {
  auto [it, added] = body.copies.emplace(value, nullptr);
  if (!added) return;
  const auto number = static_cast<int64_t>(body.operands.size());
  it->second = body.computation->Add(Opcode::kParameter, value->shape(), {},
                                     hlo::ParameterAttributes{number});
  body.operands.push_back(value);
}

void AddCopy(CompositeBody& body, const Instruction* member) {
  if (body.copies.contains(member)) return;
  std::vector<Instruction*> operands;
  for (const Instruction* operand : member->operands()) {
    operands.push_back(body.copies.at(operand));
  }
  body.copies[member] = body.computation->Add(member->opcode(), member->shape(), operands,
                                              member->attributes(), member->called_computations());
}

}  // namespace

CompositeBody CopyIntoBody(std::span<Instruction* const> members, std::string name) {
  CompositeBody body{members[0]->parent()->module()->AddComputation(std::move(name)), {}, {}};
  std::unordered_set<const Instruction*> before;
  for (const Instruction* member : members) {
    for (Instruction* operand : member->operands()) {
      if (!before.contains(operand)) AddParameter(body, operand);
    }
    before.insert(member);
  }
  for (const Instruction* member : members) AddCopy(body, member);
  return body;
}

}  // namespace cpu
