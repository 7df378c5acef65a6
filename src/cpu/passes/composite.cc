#include "cpu/passes/composite.h"

#include <bit>
#include <string>
#include <utility>

#include "hlo/error.h"

namespace cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// What became of the instructions that a kernel holds or reads. They are few, and asked for several
// times each: places in one array, where maps would ask for memory for each.
class Copies {
 public:
  struct Copy {
    const Instruction* of = nullptr;  // null: a free place
    Instruction* copy = nullptr;      // null: none yet
    bool is_member_so_far = false;
  };

  explicit Copies(std::span<Instruction* const> members) {
    size_t count = members.size();
    for (const Instruction* member : members) count += member->operand_count();
    copies_.resize(std::bit_ceil(2 * count));
  }

  // Of a member, or what one reads.
  Copy& operator[](const Instruction* instruction) {
    const size_t mask = copies_.size() - 1;
    for (size_t i = static_cast<size_t>(instruction->id()) & mask;; i = (i + 1) & mask) {
      Copy& copy = copies_[i];
      if (copy.of == nullptr) copy.of = instruction;
      if (copy.of == instruction) return copy;
    }
  }

 private:
  std::vector<Copy> copies_;
};

struct CompositeBody {
  hlo::Computation* computation;       // its results are still to be set
  std::vector<Instruction*> operands;  // what the members read from outside, one a parameter
  Copies copies;                       // of members and operands
};

// Kernels have few parameters each, and share what says their numbers.
hlo::SharedAttributes NumberOfParameter(int64_t number) {
  static const auto* const first = [] {
    auto* attributes = new std::vector<hlo::SharedAttributes>;
    for (int64_t i = 0; i < 32; ++i) attributes->emplace_back(hlo::ParameterAttributes{i});
    return attributes;
  }();
  if (number < std::ssize(*first)) return (*first)[static_cast<size_t>(number)];
  return hlo::ParameterAttributes{number};
}

void AddParameter(CompositeBody& body, Instruction* value, Instruction*& copy) {
  if (copy != nullptr) return;
  const auto number = static_cast<int64_t>(body.operands.size());
  copy = body.computation->Add(Opcode::kParameter, value->shape(), {}, NumberOfParameter(number));
  body.operands.push_back(value);
}

void AddCopy(CompositeBody& body, const Instruction* member) {
  Instruction*& copy = body.copies[member].copy;
  if (copy != nullptr) return;
  hlo::InstructionList operands;
  operands.reserve(member->operand_count());
  for (const Instruction* operand : member->operands()) {
    operands.push_back(body.copies[operand].copy);
  }
  copy = body.computation->Add(member->opcode(), member->shape(), std::move(operands),
                               member->shared_attributes(), member->called_computations());
}

// Copies `members` into a new computation `name` of their module; one that comes twice is copied
// once. What they read and is no member before them becomes a parameter, in the order in which they
// read it.
CompositeBody CopyIntoBody(std::span<Instruction* const> members, std::string name) {
  CompositeBody body{
      members[0]->parent()->module()->AddComputation(std::move(name)), {}, Copies(members)};
  for (const Instruction* member : members) {
    for (Instruction* operand : member->operands()) {
      Copies::Copy& read = body.copies[operand];
      if (!read.is_member_so_far) AddParameter(body, operand, read.copy);
    }
    body.copies[member].is_member_so_far = true;
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
    Instruction* copy = body.copies[output].copy;
    if (copy == nullptr) {
      throw hlo::Error(hlo::ErrorCode::kInternal,
                       "a kernel does not compute its output " + output->ToString());
    }
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
  body.computation->set_results(std::move(results));
  hlo::Computation& computation = *members[0]->parent();
  Instruction* composite = computation.Add(
      Opcode::kComposite, shapes.size() == 1 ? shapes[0] : hlo::Shape::Tuple(shapes),
      std::move(body.operands), hlo::CompositeAttributes{std::string(kind.name), {}, 0},
      {body.computation});
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
