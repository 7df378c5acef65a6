#include "hlo/instruction.h"

#include <algorithm>

#include "hlo/module.h"

namespace hlo {

// Constant too, but clang cannot tell of GCC's strings, so that it may not be asked to.
const Metadata SharedMetadata::kNone{};
constinit const Attributes SharedAttributes::kNone{};

std::shared_ptr<const Attributes> SharedAttributes::Shared(Attributes attributes) {
  if (std::holds_alternative<NoAttributes>(attributes)) return nullptr;
  return std::allocate_shared<const Attributes>(process::SmallAllocator<Attributes>(),
                                                std::move(attributes));
}

bool SharedAttributes::operator==(const SharedAttributes& other) const {
  return attributes_ == other.attributes_ || **this == *other;
}

void Instruction::AddUser(Instruction* user) { users_.push_back(user); }

void Instruction::RemoveUser(Instruction* user) {
  // Recent users are the likelier ones to go.
  for (size_t i = users_.size(); i-- > 0;) {
    if (users_[i] != user) continue;
    users_[i] = users_.back();
    return users_.pop_back();
  }
}

void Instruction::ReplaceOperand(size_t index, Instruction* value) {
  Instruction* old = operands_[index];
  if (old == value) return;
  if (std::ranges::find(operands_, value) == operands_.end()) value->AddUser(this);
  operands_[index] = value;
  if (std::ranges::find(operands_, old) == operands_.end()) old->RemoveUser(this);
}

void Instruction::ReplaceAllUsesWith(Instruction* value) {
  if (value == this) return;
  const InstructionList users = std::move(users_);
  for (Instruction* user : users) {
    if (user == value) {
      users_.push_back(user);
      continue;
    }
    if (std::ranges::find(user->operands_, value) == user->operands_.end()) value->AddUser(user);
    std::ranges::replace(user->operands_, this, value);
  }
  std::ranges::replace(parent_->results_, this, value);
}

bool Instruction::HasSideEffect() const {
  switch (opcode_) {
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
    case Opcode::kSend:
    case Opcode::kRecv:
      return true;
    case Opcode::kCustomCall:
      return as<CustomCallAttributes>().has_side_effect;
    case Opcode::kCall:
    case Opcode::kCase:
    case Opcode::kComposite:
    case Opcode::kIf:
    case Opcode::kWhile:
      return std::ranges::any_of(called_computations_, [](const Computation* called) {
        return std::ranges::any_of(called->instructions(), [](const auto& instruction) {
          return instruction->HasSideEffect();
        });
      });
    default:
      return IsCollective(opcode_);
  }
}

std::string Instruction::ToString() const {
  std::string text = "%" + std::to_string(id_) + " = " + shape_.ToString() + " " +
                     std::string(Name(opcode_)) + "(";
  for (size_t i = 0; i < operands_.size(); ++i) {
    text += (i ? ", %" : "%") + std::to_string(operands_[i]->id());
  }
  text += ")";
  std::string attributes = hlo::ToString(*attributes_);
  if (!attributes.empty()) text += ", " + attributes;
  for (size_t i = 0; i < called_computations_.size(); ++i) {
    text += (i ? ", @" : ", calls @") + called_computations_[i]->name();
  }
  if (!metadata_->source_file.empty()) {
    text += ", metadata={op_name=\"" + metadata_->op_name + "\" source_file=\"" +
            metadata_->source_file + "\" source_line=" + std::to_string(metadata_->source_line) +
            "}";
  }
  return text;
}

}  // namespace hlo
