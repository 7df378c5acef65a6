#include "lazy/resolve_marks.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/marks.h"

namespace lazy {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool IsMark(const Instruction& instruction, const char* target) {
  return instruction.opcode() == Opcode::kCustomCall &&
         instruction.as<hlo::CustomCallAttributes>().target == target;
}

template <typename T>
const T& Field(const Instruction& mark, const char* name) {
  return std::get<T>(mark.as<hlo::CustomCallAttributes>().dictionary.at(name).value);
}

using Identity = std::pair<std::string, std::string>;  // name, id

Identity IdentityOf(const Instruction& mark) {
  return {Field<std::string>(mark, "name"), Field<std::string>(mark, "id")};
}

struct Composite {
  Identity identity;
  std::map<int64_t, Instruction*> outputs;  // by position
};

// In the order of their last outputs, so that what lies inside another comes first.
std::vector<Composite> FindComposites(const Computation& computation) {
  std::vector<Composite> found;
  for (const auto& instruction : computation.instructions()) {
    if (!IsMark(*instruction, hlo::kCompositeMark) || Field<bool>(*instruction, "is_input"))
      continue;
    const Identity identity = IdentityOf(*instruction);
    auto known = std::ranges::find(found, identity, &Composite::identity);
    Composite composite{identity, {}};
    if (known != found.end()) {
      composite = std::move(*known);
      found.erase(known);
    }
    const auto position = Field<int64_t>(*instruction, "position");
    if (!composite.outputs.emplace(position, instruction.get()).second) {
      throw hlo::Error(hlo::ErrorCode::kInvalidArgument, "the composite " + identity.first +
                                                             " has two outputs at position " +
                                                             std::to_string(position));
    }
    found.push_back(std::move(composite));
  }
  return found;
}

// The computation between the marks of one composite.
class Decomposition {
 public:
  Decomposition(Computation& source, const Composite& composite)
      : source_(source),
        composite_(composite),
        target_(source.module()->AddComputation(composite.identity.first + ".impl", &source)) {}

  // The `composite` instruction's results, by output.
  std::vector<Instruction*> Build() {
    FindBorder();
    for (const auto& [position, input] : inputs_) AddParameter(input->operand(0), input);
    for (Instruction* parameter : captured_) AddParameter(parameter, parameter);
    std::vector<Instruction*> results;
    for (const auto& [position, output] : composite_.outputs) {
      results.push_back(Copy(output->operand(0)));
    }
    target_->set_results(results);
    return AddComposite();
  }

 private:
  bool IsOwnInput(const Instruction& instruction) const {
    return IsMark(instruction, hlo::kCompositeMark) && Field<bool>(instruction, "is_input") &&
           IdentityOf(instruction) == composite_.identity;
  }

  // The inputs and parameters that the outputs need.
  void FindBorder() {
    std::vector<Instruction*> stack;
    std::unordered_map<const Instruction*, bool> seen;
    for (const auto& [position, output] : composite_.outputs) stack.push_back(output->operand(0));
    while (!stack.empty()) {
      Instruction* instruction = stack.back();
      stack.pop_back();
      if (!std::exchange(seen[instruction], true)) NoteBorder(instruction, stack);
    }
  }

  void NoteBorder(Instruction* instruction, std::vector<Instruction*>& stack) {
    if (IsOwnInput(*instruction)) {
      inputs_.emplace(Field<int64_t>(*instruction, "position"), instruction);
    } else if (instruction->opcode() == Opcode::kParameter) {
      captured_.push_back(instruction);
    } else {
      stack.insert(stack.end(), instruction->operands().begin(), instruction->operands().end());
    }
  }

  // `stands_for` becomes a parameter, for which the composite takes `operand`.
  void AddParameter(Instruction* operand, Instruction* stands_for) {
    const auto number = static_cast<int64_t>(operands_.size());
    copies_[stands_for] =
        target_->Add(Opcode::kParameter, stands_for->shape(), {}, hlo::ParameterAttributes{number});
    operands_.push_back(operand);
  }

  // With its operands first. Iterative, since programs are deep.
  Instruction* Copy(Instruction* root) {
    std::vector<Instruction*> stack = {root};
    while (!stack.empty()) {
      Instruction* instruction = stack.back();
      const size_t depth = stack.size();
      if (!copies_.contains(instruction)) {
        for (Instruction* operand : instruction->operands()) {
          if (!copies_.contains(operand)) stack.push_back(operand);
        }
      }
      if (stack.size() != depth) continue;
      stack.pop_back();
      if (!copies_.contains(instruction)) copies_[instruction] = CopyOne(*instruction);
    }
    return copies_.at(root);
  }

  Instruction* CopyOne(const Instruction& instruction) {
    std::vector<Instruction*> operands;
    for (Instruction* operand : instruction.operands()) operands.push_back(copies_.at(operand));
    Instruction* copy =
        target_->Add(instruction.opcode(), instruction.shape(), operands,
                     instruction.shared_attributes(), instruction.called_computations());
    copy->set_metadata(instruction.shared_metadata());
    return copy;
  }

  std::vector<Instruction*> AddComposite() {
    hlo::CompositeAttributes attributes;
    attributes.name = composite_.identity.first;
    std::vector<hlo::Shape> shapes;
    for (const auto& [position, output] : composite_.outputs) {
      attributes.attributes.merge(
          hlo::AttributeDictionary(Field<hlo::AttributeDictionary>(*output, "attributes")));
      shapes.push_back(output->shape());
    }
    hlo::Builder builder(&source_);
    builder.set_metadata(hlo::Metadata{composite_.identity.first, "", 0});
    hlo::Value composite =
        builder.Create(Opcode::kComposite, operands_, std::move(attributes), {target_},
                       shapes.size() == 1 ? shapes[0] : hlo::Shape::Tuple(shapes));
    std::vector<Instruction*> results;
    for (size_t i = 0; i < shapes.size(); ++i) {
      results.push_back(builder.Result(composite, static_cast<int64_t>(i)));
    }
    return results;
  }

  Computation& source_;
  const Composite& composite_;
  Computation* target_;
  std::map<int64_t, Instruction*> inputs_;
  std::vector<Instruction*> captured_;
  std::vector<Instruction*> operands_;
  std::unordered_map<const Instruction*, Instruction*> copies_;
};

// Each mark becomes what it marks.
void RemoveMarks(Computation& computation) {
  std::vector<Instruction*> marks;
  for (const auto& instruction : computation.instructions()) {
    if (IsMark(*instruction, hlo::kLocationMark)) {
      hlo::Metadata metadata = instruction->operand(0)->metadata();
      metadata.op_name = Field<std::string>(*instruction, "name");
      instruction->operand(0)->set_metadata(std::move(metadata));
    } else if (!IsMark(*instruction, hlo::kCompositeMark)) {
      continue;
    }
    marks.push_back(instruction.get());
  }
  for (Instruction* mark : marks) {
    mark->ReplaceAllUsesWith(mark->operand(0));
    computation.Remove(mark);
  }
}

bool HasMarks(const Computation& computation) {
  return std::ranges::any_of(computation.instructions(), [](const auto& instruction) {
    return IsMark(*instruction, hlo::kCompositeMark) || IsMark(*instruction, hlo::kLocationMark);
  });
}

}  // namespace

bool ResolveMarks(hlo::Module& module) {
  std::vector<Computation*> marked;
  for (const auto& computation : module.computations()) {
    if (HasMarks(*computation)) marked.push_back(computation.get());
  }
  for (Computation* computation : marked) {
    for (const Composite& composite : FindComposites(*computation)) {
      const std::vector<Instruction*> results = Decomposition(*computation, composite).Build();
      size_t i = 0;
      for (const auto& [position, output] : composite.outputs) {
        output->ReplaceAllUsesWith(results[i++]);
      }
      computation->SortTopologically();
      computation->RemoveDeadInstructions();
    }
    RemoveMarks(*computation);
  }
  if (marked.empty()) return false;
  for (const auto& computation : module.computations()) {
    if (HasMarks(*computation)) RemoveMarks(*computation);
    computation->RemoveDeadInstructions();
  }
  module.RemoveUnreachableComputations();
  module.SortComputations();
  return true;
}

}  // namespace lazy
