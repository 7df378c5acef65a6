#include "cpu/emit/row_cache.h"

#include "cpu/element_cost.h"

namespace cpu {

using hlo::Computation;
using hlo::Dimensions;
using hlo::Instruction;
using hlo::Opcode;

void RowCache::Plan(const Computation& body, const std::vector<const Instruction*>& reduces,
                    const Extent& column_count) {
  if (reduces.empty() || emitter_.IsLess(kMostColumns, column_count)) return;
  // In how many passes (each reduce, and the last) an instruction is evaluated.
  std::map<const Instruction*, int> passes;
  auto mark = [&](const std::vector<const Instruction*>& roots) {
    std::set<const Instruction*> seen;
    std::vector<const Instruction*> stack = roots;
    while (!stack.empty()) {
      const Instruction* instruction = stack.back();
      stack.pop_back();
      if (!seen.insert(instruction).second) continue;
      ++passes[instruction];
      if (instruction->opcode() == Opcode::kReduce || IsExpensive(*instruction)) continue;
      for (const Instruction* operand : instruction->operands()) stack.push_back(operand);
    }
  };
  for (const Instruction* reduce : reduces) {
    std::vector<const Instruction*> roots;
    for (const Instruction* operand : reduce->operands()) roots.push_back(operand);
    mark(roots);
  }
  std::vector<const Instruction*> roots;
  for (const Instruction* result : body.results()) {
    if (!ReduceOf(result)) roots.push_back(result);
  }
  mark(roots);
  const Dimensions& space = reduces[0]->operand(0)->dimensions();
  // In the body's order: the same body has the same code.
  for (const auto& member : body.instructions()) {
    const Instruction* instruction = member.get();
    const auto found = passes.find(instruction);
    const int count = found == passes.end() ? 0 : found->second;
    if (count < 2 || !IsExpensive(*instruction) || cached_.size() >= 4) continue;
    if (instruction->dimensions() != space || hlo::IsComplex(instruction->element_type())) continue;
    llvm::Value* capacity = emitter_.Number(column_count + (lanes_ - 1));
    emitter_.At(0);
    llvm::Type* type = RegisterType(b_.getContext(), instruction->element_type());
    // Whole vectors are stored, wherever a run of columns begins: the last may reach beyond.
    auto* memory = b_.CreateAlloca(type, capacity);
    memory->setAlignment(llvm::Align(64));
    cached_[instruction] = {memory, false};
  }
}

Accumulators RowCache::Through(const Index& index, const std::vector<Run>& columns,
                               const Accumulators& accumulators, const NestBody& body) {
  // Where in the row these lanes are.
  Position linear = emitter_.ConstantPosition(0);
  for (size_t i = 0; i < columns.size(); ++i) {
    linear = emitter_.Add(emitter_.Multiply(linear, columns[i].size),
                          index[index.size() - columns.size() + i].position);
  }
  auto same = [&](const Index& other) {
    if (other.size() != index.size()) return false;
    for (size_t i = 0; i < index.size(); ++i) {
      if (other[i].position.base != index[i].position.base ||
          other[i].position.vector != index[i].position.vector) {
        return false;
      }
    }
    return true;
  };
  emitter_.before = [&, this](const Instruction* instruction, const Index& at,
                              BodyEmitter::Value* value) {
    auto cached = cached_.find(instruction);
    if (cached == cached_.end() || !cached->second.filled || !same(at)) return false;
    value->level = emitter_.level();
    emitter_.AtInnermost();
    llvm::Type* type = RegisterType(b_.getContext(), instruction->element_type());
    llvm::Type* vector = linear.uniform() ? type : llvm::FixedVectorType::get(type, lanes_);
    value->element = {
        b_.CreateAlignedLoad(vector, b_.CreateGEP(type, cached->second.memory, linear.base),
                             llvm::Align(1)),
        nullptr};
    return true;
  };
  emitter_.after = [&, this](const Instruction* instruction, const Index& at,
                             BodyEmitter::Value* value) {
    auto cached = cached_.find(instruction);
    if (cached == cached_.end() || cached->second.filled || !same(at)) return false;
    emitter_.AtInnermost();
    llvm::Type* type = RegisterType(b_.getContext(), instruction->element_type());
    Element element = linear.uniform() ? value->element : emitter_.Splat(value->element);
    b_.CreateAlignedStore(element.real, b_.CreateGEP(type, cached->second.memory, linear.base),
                          llvm::Align(1));
    stored_.insert(instruction);
    return false;
  };
  Accumulators result = body(index, accumulators);
  emitter_.before = nullptr;
  emitter_.after = nullptr;
  return result;
}

void RowCache::EndPass() {
  for (const Instruction* instruction : stored_) cached_[instruction].filled = true;
  stored_.clear();
}

}  // namespace cpu
