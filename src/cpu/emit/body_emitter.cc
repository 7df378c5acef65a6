#include "cpu/emit/body_emitter.h"

#include <llvm/IR/Intrinsics.h>

#include "cpu/element_cost.h"
#include "cpu/kernel_signature.h"
#include "hlo/error.h"

namespace cpu {

using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;

BodyEmitter::BodyEmitter(llvm::Function* function, const hlo::Computation& body, int lanes,
                         bool wide_index, KernelSizes& sizes)
    : function_(function),
      body_(body),
      lanes_(lanes),
      wide_index_(wide_index),
      sizes_(sizes),
      b_(&function->getEntryBlock()),
      elementwise_(b_) {
  scopes_.push_back({&function->getEntryBlock(), {}, {}, {}});
}

void BodyEmitter::set_round(bool round) { elementwise_.set_round(round); }

void BodyEmitter::At(int level) {
  llvm::BasicBlock* block = scopes_[level].block;
  if (llvm::Instruction* terminator = block->getTerminator()) {
    b_.SetInsertPoint(terminator);
  } else {
    b_.SetInsertPoint(block);
  }
}

// ---------------------------------------------------------------------------------------------------------
// Loops.

BodyEmitter::Accumulators BodyEmitter::Loop(
    llvm::Value* begin, llvm::Value* end, int64_t step, Accumulators initial,
    const std::function<Accumulators(llvm::Value*, const Accumulators&)>& body) {
  AtInnermost();
  const int outer = level();
  llvm::LLVMContext& context = b_.getContext();
  llvm::BasicBlock* before_block = scopes_[outer].block;
  auto* head = llvm::BasicBlock::Create(context, "loop", function_);
  auto* exit = llvm::BasicBlock::Create(context, "done", function_);
  llvm::Value* enter = b_.CreateICmpSLT(begin, end);
  b_.CreateCondBr(enter, head, exit);
  b_.SetInsertPoint(head);
  llvm::PHINode* variable = b_.CreatePHI(b_.getInt64Ty(), 2);
  variable->addIncoming(begin, before_block);
  std::vector<llvm::PHINode*> phis;
  Accumulators current;
  for (llvm::Value* value : initial) {
    llvm::PHINode* phi = b_.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, before_block);
    phis.push_back(phi);
    current.push_back(phi);
  }
  scopes_.push_back({head, {}, {}, {}});
  Accumulators next = body(variable, current);
  AtInnermost();
  llvm::BasicBlock* last = scopes_.back().block;
  llvm::Value* advanced = b_.CreateNSWAdd(variable, b_.getInt64(step));
  b_.CreateCondBr(b_.CreateICmpSLT(advanced, end), head, exit);
  variable->addIncoming(advanced, last);
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(next[i], last);
  scopes_.pop_back();
  b_.SetInsertPoint(exit);
  Accumulators results;
  for (size_t i = 0; i < phis.size(); ++i) {
    llvm::PHINode* phi = b_.CreatePHI(initial[i]->getType(), 2);
    phi->addIncoming(initial[i], before_block);
    phi->addIncoming(next[i], last);
    results.push_back(phi);
  }
  scopes_[outer].block = exit;
  return results;
}

BodyEmitter::Accumulators BodyEmitter::IfElse(llvm::Value* condition,
                                              const std::function<Accumulators()>& then,
                                              const Accumulators& otherwise) {
  AtInnermost();
  const int outer = level();
  llvm::BasicBlock* before_block = scopes_[outer].block;
  auto* block = llvm::BasicBlock::Create(b_.getContext(), "then", function_);
  auto* exit = llvm::BasicBlock::Create(b_.getContext(), "join", function_);
  b_.CreateCondBr(condition, block, exit);
  scopes_.push_back({block, {}, {}, {}});
  Accumulators values = then();
  AtInnermost();
  llvm::BasicBlock* last = scopes_.back().block;
  b_.CreateBr(exit);
  scopes_.pop_back();
  b_.SetInsertPoint(exit);
  Accumulators results;
  for (size_t i = 0; i < otherwise.size(); ++i) {
    llvm::PHINode* phi = b_.CreatePHI(otherwise[i]->getType(), 2);
    phi->addIncoming(otherwise[i], before_block);
    phi->addIncoming(values[i], last);
    results.push_back(phi);
  }
  scopes_[outer].block = exit;
  return results;
}

void BodyEmitter::If(llvm::Value* condition, const std::function<void()>& then) {
  IfElse(condition,
         [&] {
           then();
           return Accumulators{};
         },
         {});
}

// ---------------------------------------------------------------------------------------------------------
// Values.

void BodyEmitter::Bind(const Instruction* instruction, std::vector<Element> results) {
  scopes_.back().bound[instruction] = std::move(results);
}

Element BodyEmitter::Splat(const Element& element) {
  auto splat = [&](llvm::Value* value) {
    return value && !value->getType()->isVectorTy() ? b_.CreateVectorSplat(lanes_, value) : value;
  };
  if (lanes_ == 1) return element;
  return {splat(element.real), splat(element.imaginary)};
}

void BodyEmitter::Widen(std::vector<Element>& elements, bool vector) {
  for (const Element& element : elements) vector |= element.real->getType()->isVectorTy();
  if (!vector) return;
  for (Element& element : elements) element = Splat(element);
}

std::vector<Element> BodyEmitter::Apply(const hlo::Computation& computation,
                                        std::vector<Element> arguments) {
  std::map<const Instruction*, std::vector<Element>> values;
  for (const auto& instruction : computation.instructions()) {
    std::vector<Element>& result = values[instruction.get()];
    switch (instruction->opcode()) {
      case Opcode::kParameter:
        result = {arguments[instruction->parameter_number()]};
        continue;
      case Opcode::kConstant:
        result = {elementwise_.Constant(instruction->literal(), 0)};
        continue;
      case Opcode::kReshape:
      case Opcode::kBroadcastInDim:
      case Opcode::kTranspose:
        result = values[instruction->operand(0)];
        continue;
      case Opcode::kGetTupleElement:
        result = {values[instruction->operand(0)][instruction->tuple_index()]};
        continue;
      default:
        break;
    }
    std::vector<Element> operands;
    for (const Instruction* operand : instruction->operands()) {
      for (const Element& element : values[operand]) operands.push_back(element);
    }
    if (instruction->shape().is_array() && instruction->shape().rank() != 0) {
      throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                       "the CPU engine needs scalar operations inside a reduction's body: " +
                           instruction->ToString());
    }
    if (instruction->opcode() == Opcode::kWhile) {
      result = ApplyLoop(*instruction, std::move(operands));
    } else if (instruction->opcode() == Opcode::kComposite ||
               instruction->opcode() == Opcode::kCall) {
      result = Apply(*instruction->called_computations()[0], operands);
    } else if (instruction->opcode() == Opcode::kTuple) {
      result = operands;
    } else {
      Widen(operands);
      result = {elementwise_.Emit(*instruction, operands)};
    }
  }
  std::vector<Element> results;
  for (const Instruction* result : computation.results()) {
    for (const Element& element : values[result]) results.push_back(element);
  }
  return results;
}

BodyEmitter::Value BodyEmitter::Evaluate(const Instruction* instruction, const Index& index) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    auto bound = scope->bound.find(instruction);
    if (bound == scope->bound.end()) continue;
    return {bound->second[0], static_cast<int>(scopes_.rend() - scope) - 1};
  }
  std::vector<const void*> key = {instruction, mask_.value};
  for (const IndexGroup& group : index) {
    key.push_back(reinterpret_cast<const void*>(group.end));
    key.push_back(group.position.vector ? group.position.vector : group.position.base);
    key.push_back(reinterpret_cast<const void*>(group.position.stride));
  }
  for (Scope& scope : scopes_) {
    auto found = scope.values.find(key);
    if (found != scope.values.end()) return found->second;
  }
  Value value;
  if (!before || !before(instruction, index, &value)) {
    value = EvaluateUncached(instruction, index);
    if (after) after(instruction, index, &value);
  }
  scopes_[value.level].values[std::move(key)] = value;
  return value;
}

BodyEmitter::Value BodyEmitter::EvaluateUncached(const Instruction* instruction,
                                                 const Index& index) {
  const Instruction* operand = instruction->operand_count() ? instruction->operand(0) : nullptr;
  if (const std::optional<Index> moved = OperandIndex(instruction, index)) {
    return Evaluate(operand, *moved);
  }
  switch (instruction->opcode()) {
    case Opcode::kParameter: {
      Position linear = Linearize(index, instruction->dimensions());
      return Load(BufferPointer(instruction->parameter_number()), linear,
                  instruction->element_type());
    }
    case Opcode::kConstant:
      return EvaluateConstant(instruction->literal());
    case Opcode::kIota:
      return EvaluateIota(instruction, index);
    case Opcode::kPad:
      return EvaluatePad(instruction, index);
    case Opcode::kConcatenate:
      return EvaluateConcatenate(instruction, index);
    case Opcode::kGather:
      return EvaluateGather(instruction, index);
    case Opcode::kDynamicSlice:
      return EvaluateDynamicSlice(instruction, index);
    case Opcode::kDynamicUpdateSlice:
      return EvaluateDynamicUpdateSlice(instruction, index);
    case Opcode::kReduceWindow:
      return EvaluateReduceWindow(instruction, 0, index);
    case Opcode::kGetTupleElement:
      if (operand->opcode() != Opcode::kReduceWindow) break;
      return EvaluateReduceWindow(operand, instruction->tuple_index(), index);
    default:
      break;
  }
  return EvaluateElementwise(instruction, index);
}

BodyEmitter::Value BodyEmitter::EvaluateElementwise(const Instruction* instruction,
                                                    const Index& index) {
  if (!hlo::IsElementwise(instruction->opcode()) && instruction->opcode() != Opcode::kMap &&
      instruction->opcode() != Opcode::kComposite &&
      instruction->opcode() != Opcode::kBitcastConvert) {
    throw hlo::Error(hlo::ErrorCode::kInternal,
                     "not an operation of a fused loop: " + instruction->ToString());
  }
  if (const std::optional<Value> value = EvaluateArms(instruction, index)) return *value;
  Value result;
  result.level = HasLoop(*instruction) ? level() : arm_level_;
  std::vector<Element> operands;
  for (const Instruction* operand : instruction->operands()) {
    Value value = EvaluateBeside(operand, index);
    result.level = std::max(result.level, value.level);
    operands.push_back(value.element);
  }
  At(result.level);
  Widen(operands);
  if (instruction->opcode() == Opcode::kMap) {
    result.element = Apply(*instruction->called_computations()[0], operands)[0];
  } else if (instruction->opcode() == Opcode::kComposite) {
    result.element = elementwise_.Erf(operands[0], instruction->element_type());
  } else {
    result.element = elementwise_.Emit(*instruction, operands);
  }
  return result;
}

// A number that was made of a size varies with it.
BodyEmitter::Value BodyEmitter::EvaluateConstant(const hlo::Literal& literal) {
  const ElementType type = literal.shape().element_type();
  const std::optional<int64_t> bits = BitsOf(literal);
  const Extent number = bits && !hlo::IsComplex(type) ? Size(*bits) : Extent(0);
  if (!number.varies) return {elementwise_.Constant(literal, 0), 0};
  llvm::Value* slot = Number(number);
  At(0);
  llvm::Type* memory = MemoryType(b_.getContext(), type);
  llvm::Value* part = b_.CreateTrunc(slot, b_.getIntNTy(memory->getScalarSizeInBits()));
  return {{elementwise_.FromMemory(b_.CreateBitCast(part, memory), type)}, 0};
}

BodyEmitter::Value BodyEmitter::EvaluateIota(const Instruction* instruction, const Index& index) {
  const int64_t dimension = instruction->as<hlo::DimensionAttributes>().dimension;
  Position position = Coordinate(index, instruction->dimensions(), dimension);
  Value result;
  llvm::Value* value = ToValue(position, &result.level);
  At(result.level);
  const bool narrow = value->getType()->getScalarSizeInBits() == 32;
  result.element =
      elementwise_.Convert({value, nullptr}, narrow ? ElementType::kS32 : ElementType::kS64,
                           instruction->element_type());
  return result;
}

}  // namespace cpu
