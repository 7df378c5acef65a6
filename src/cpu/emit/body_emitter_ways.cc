// Where the lanes of a vector go different ways: loops, which an element leaves when it is done,
// and selects, whose arms need not be computed where no lane takes them.
#include <algorithm>
#include <unordered_set>

#include "cpu/element_cost.h"
#include "cpu/emit/body_emitter.h"

namespace cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// From this cost on (OperationCost) it pays to ask the lanes, though the processor guesses wrong.
constexpr int kCostlyArm = 40;

bool IsAtItsIndex(const Instruction& x) {
  return hlo::IsElementwise(x.opcode()) || x.opcode() == Opcode::kMap ||
         x.opcode() == Opcode::kComposite;
}

}  // namespace

llvm::Value* BodyEmitter::IsAny(llvm::Value* condition) {
  llvm::Value* mask = mask_.value;
  if (mask && mask->getType() == condition->getType()) {
    condition = b_.CreateAnd(condition, mask);
    mask = nullptr;
  }
  const auto of_lanes = [&](llvm::Value* x) {
    return x->getType()->isVectorTy() ? b_.CreateOrReduce(x) : x;
  };
  llvm::Value* any = of_lanes(condition);
  return mask ? b_.CreateAnd(any, of_lanes(mask)) : any;
}

std::vector<Element> BodyEmitter::ApplyLoop(const Instruction& loop, std::vector<Element> state) {
  Widen(state);
  const bool is_vector = state[0].real->getType()->isVectorTy();
  llvm::LLVMContext& context = b_.getContext();
  llvm::BasicBlock* before_loop = b_.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(context, "turns", function_);
  auto* turn = llvm::BasicBlock::Create(context, "turn", function_);
  auto* exit = llvm::BasicBlock::Create(context, "settled", function_);
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  const auto for_parts = [](std::vector<Element>& elements, const auto& visit) {
    for (Element& element : elements) {
      visit(element.real);
      if (element.imaginary) visit(element.imaginary);
    }
  };
  std::vector<llvm::PHINode*> parts;
  for_parts(state, [&](llvm::Value*& part) {
    llvm::PHINode* phi = b_.CreatePHI(part->getType(), 2);
    phi->addIncoming(part, before_loop);
    parts.push_back(phi);
    part = phi;
  });
  const auto& called = loop.called_computations();
  llvm::Value* goes_on = IsAny(Apply(*called[0], state)[0].real);
  b_.CreateCondBr(goes_on, turn, exit);
  b_.SetInsertPoint(turn);
  std::vector<Element> next = Apply(*called[1], state);
  Widen(next, is_vector);
  size_t number = 0;
  for_parts(next,
            [&](llvm::Value* part) { parts[number++]->addIncoming(part, b_.GetInsertBlock()); });
  b_.CreateBr(head);
  b_.SetInsertPoint(exit);
  scopes_.back().block = exit;
  return state;
}

bool BodyEmitter::MayHaveCostlyArms() {
  if (!body_cost_) {
    body_cost_ = 0;
    for (const auto& instruction : body_.instructions()) *body_cost_ += OperationCost(*instruction);
  }
  return *body_cost_ >= kCostlyArm;
}

// What is used for the arm alone, and costs something together.
BodyEmitter::Arm BodyEmitter::ArmOf(const Instruction* select, size_t operand) const {
  const Instruction* root = select->operand(operand);
  std::unordered_set<const Instruction*> members;
  const auto is_result = [&](const Instruction* x) {
    return std::ranges::find(body_.results(), x) != body_.results().end();
  };
  const auto is_of_arm = [&](const Instruction* x) {
    if (!IsAtItsIndex(*x) || x->dimensions() != select->dimensions() || is_result(x)) return false;
    return std::ranges::all_of(x->users(), [&](const Instruction* user) {
      return members.contains(user) || (x == root && user == select);
    });
  };
  const bool is_also_other = select->operand(3 - operand) == root || select->operand(0) == root;
  if (is_also_other || !is_of_arm(root)) return {};
  members.insert(root);
  std::vector<const Instruction*> order = {root};
  int cost = OperationCost(*root);
  // Users come after their operands, so that all of a candidate's are known on the way back.
  const auto& instructions = body_.instructions();
  auto place = std::ranges::find(instructions, root, &std::unique_ptr<Instruction>::get);
  while (place != instructions.begin()) {
    const Instruction* x = (--place)->get();
    if (x->users().empty() || !is_of_arm(x)) continue;
    members.insert(x);
    order.push_back(x);
    cost += OperationCost(*x);
  }
  Arm arm;
  arm.is_costly = cost >= kCostlyArm;
  if (!arm.is_costly) return arm;
  for (const Instruction* member : order) {
    for (const Instruction* read : member->operands()) {
      if (!members.contains(read)) arm.reads.push_back(read);
    }
  }
  return arm;
}

Element BodyEmitter::EvaluateArm(const Instruction* arm, llvm::Value* taken, const Index& index) {
  AtInnermost();
  llvm::Type* type = RegisterType(b_.getContext(), arm->element_type());
  if (taken->getType()->isVectorTy()) type = llvm::FixedVectorType::get(type, lanes_);
  llvm::Value* nothing = llvm::Constant::getNullValue(type);
  const bool is_complex = hlo::IsComplex(arm->element_type());
  const Accumulators parts = IfElse(
      IsAny(taken),
      [&] {
        const int outer = std::exchange(arm_level_, level());
        ++arm_depth_;
        Element value = EvaluateBeside(arm, index).element;
        --arm_depth_;
        arm_level_ = outer;
        AtInnermost();
        if (taken->getType()->isVectorTy()) value = Splat(value);
        return is_complex ? Accumulators{value.real, value.imaginary} : Accumulators{value.real};
      },
      Accumulators(is_complex ? 2 : 1, nothing));
  return {parts[0], is_complex ? parts[1] : nullptr};
}

std::optional<BodyEmitter::Value> BodyEmitter::EvaluateArms(const Instruction* select,
                                                            const Index& index) {
  if (select->opcode() != Opcode::kSelect || before || after || !MayHaveCostlyArms()) {
    return std::nullopt;
  }
  auto [found, is_new] = arms_.try_emplace(select);
  if (is_new) found->second = {ArmOf(select, 1), ArmOf(select, 2)};
  const Arms& arms = found->second;
  if (!arms[0].is_costly && !arms[1].is_costly) return std::nullopt;
  const Value condition = EvaluateBeside(select->operand(0), index);
  int determined = condition.level;
  for (size_t i = 0; i < 2; ++i) {
    if (!arms[i].is_costly) {
      determined = std::max(determined, EvaluateBeside(select->operand(i + 1), index).level);
    }
    for (const Instruction* read : arms[i].reads) {
      determined = std::max(determined, EvaluateBeside(read, index).level);
    }
  }
  // Elsewhere it is computed once for all turns of a loop; a branch is where it stands.
  const bool is_outside = determined < level() - arm_depth_;
  llvm::Value* chosen = condition.element.real;
  if (is_outside || (lanes_ > 1 && !chosen->getType()->isVectorTy())) return std::nullopt;
  std::vector<Element> operands = {condition.element};
  for (size_t i = 0; i < 2; ++i) {
    AtInnermost();
    llvm::Value* taken = i == 0 ? chosen : b_.CreateNot(chosen);
    const Instruction* arm = select->operand(i + 1);
    operands.push_back(arms[i].is_costly ? EvaluateArm(arm, taken, index)
                                         : EvaluateBeside(arm, index).element);
  }
  AtInnermost();
  Widen(operands);
  return Value{elementwise_.Emit(*select, operands), level()};
}

}  // namespace cpu
