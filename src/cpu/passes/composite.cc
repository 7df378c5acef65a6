#include "cpu/passes/composite.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

struct CompositeBody {
  hlo::Computation* computation;       // its results are still to be set
  std::vector<Instruction*> operands;  // what the members read from outside, one a parameter
  std::unordered_map<const Instruction*, Instruction*> copies;  // of members and operands
};

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

// Copies `members` into a new computation `name` of their module; one that comes twice is copied
// once. What they read and is no member before them becomes a parameter, in the order in which they
// read it.
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

}  // namespace

std::vector<Replacement> AddComposite(std::span<Instruction* const> members,
                                      std::span<Instruction* const> outputs,
                                      const KernelKind& kind) {
  CompositeBody body =
      CopyIntoBody(members, std::string(kind.name.substr(kind.name.find('.') + 1)));
  std::vector<Instruction*> results;
  std::vector<hlo::Shape> shapes;
  for (Instruction* output : outputs) {
    Instruction* copy = body.copies.at(output);
    if (!output->shape().is_tuple()) {
      results.push_back(copy);
      shapes.push_back(output->shape());
      continue;
    }
    int64_t index = 0;
    for (const hlo::Shape& shape : output->shape().tuple_shapes()) {
      results.push_back(body.computation->Add(Opcode::kGetTupleElement, shape, {copy},
                                              hlo::TupleIndexAttributes{index++}));
      shapes.push_back(shape);
    }
  }
  body.computation->set_results(results);
  hlo::Computation& computation = *members[0]->parent();
  Instruction* composite = computation.Add(
      Opcode::kComposite, shapes.size() == 1 ? shapes[0] : hlo::Shape::Tuple(shapes), body.operands,
      hlo::CompositeAttributes{std::string(kind.name), {}, 0}, {body.computation});
  composite->set_metadata(outputs[0]->shared_metadata());
  const auto pick = [&](int64_t index, const hlo::Shape& shape) {
    if (shapes.size() == 1) return composite;
    return computation.Add(Opcode::kGetTupleElement, shape, {composite},
                           hlo::TupleIndexAttributes{index});
  };
  std::vector<Replacement> replaced;
  int64_t next = 0;
  for (Instruction* output : outputs) {
    if (!output->shape().is_tuple()) {
      replaced.push_back({output, pick(next++, output->shape())});
      continue;
    }
    const std::vector<Instruction*> users = output->users();
    for (Instruction* user : users) {
      replaced.push_back({user, pick(next + user->tuple_index(), user->shape())});
    }
    next += static_cast<int64_t>(output->shape().tuple_shapes().size());
  }
  return replaced;
}

}  // namespace cpu
