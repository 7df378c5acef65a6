#include "cpu/body_emitter.h"

#include <llvm/IR/Intrinsics.h>

#include <numeric>

#include "cpu/host.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using BinaryOp = llvm::Instruction::BinaryOps;

int64_t Product(const Dimensions& dimensions, int64_t begin, int64_t end) {
  int64_t product = 1;
  for (int64_t i = begin; i < end; ++i) product *= dimensions[i];
  return product;
}

bool IsConstantZero(llvm::Value* value) {
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant && constant->isZero();
}

// Keys of Cached that are not binary operations.
enum : int { kSplatKey = 1000, kAddLanesKey, kAddressKey, kBufferKey, kClampKey };

}  // namespace

BodyEmitter::BodyEmitter(llvm::Function* function, const hlo::Computation& body, int lanes,
                         bool wide_index)
    : function_(function),
      body_(body),
      lanes_(lanes),
      wide_index_(wide_index),
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
// Positions.

llvm::Value* BodyEmitter::Cached(int operation, llvm::Value* a, llvm::Value* b, int level,
                                 const std::function<llvm::Value*()>& make) {
  auto key = std::make_tuple(operation, static_cast<const void*>(a), static_cast<const void*>(b));
  for (int i = 0; i <= level; ++i) {
    auto found = scopes_[i].arithmetic.find(key);
    if (found != scopes_[i].arithmetic.end()) return found->second;
  }
  At(level);
  llvm::Value* value = make();
  scopes_[level].arithmetic[key] = value;
  return value;
}

llvm::Value* BodyEmitter::Arithmetic(BinaryOp operation, llvm::Value* a, llvm::Value* b,
                                     int level) {
  return Cached(operation, a, b, level, [&] { return b_.CreateBinOp(operation, a, b); });
}

llvm::Type* BodyEmitter::IndexElementType() {
  return wide_index_ ? static_cast<llvm::Type*>(b_.getInt64Ty()) : b_.getInt32Ty();
}

llvm::Value* BodyEmitter::LaneVector() {
  std::vector<llvm::Constant*> lanes;
  for (int i = 0; i < lanes_; ++i) lanes.push_back(llvm::ConstantInt::get(IndexElementType(), i));
  return llvm::ConstantVector::get(lanes);
}

llvm::Value* BodyEmitter::SplatIndex(llvm::Value* scalar, int level) {
  return Cached(kSplatKey, scalar, nullptr, level, [&] {
    llvm::Value* narrow = wide_index_ ? scalar : b_.CreateTrunc(scalar, b_.getInt32Ty());
    return b_.CreateVectorSplat(lanes_, narrow);
  });
}

llvm::Value* BodyEmitter::VectorOf(const Position& position) {
  if (position.vector) return position.vector;
  llvm::Value* splat = SplatIndex(position.base, position.level);
  if (position.stride == 0) return splat;
  llvm::Value* lanes = LaneVector();
  if (position.stride != 1) {
    llvm::Value* factor = llvm::ConstantInt::getSigned(lanes->getType(), position.stride);
    lanes = b_.CreateMul(lanes, factor);
  }
  return Arithmetic(llvm::Instruction::Add, splat, lanes, position.level);
}

llvm::Value* BodyEmitter::ToValue(const Position& position, int* level) {
  *level = position.level;
  return position.uniform() ? position.base : VectorOf(position);
}

Position BodyEmitter::ConstantPosition(int64_t value) {
  return {.base = b_.getInt64(value), .multiple = std::abs(value)};
}

Position BodyEmitter::ScalarPosition(llvm::Value* value, int level, int64_t multiple) {
  return {.base = value, .level = level, .multiple = multiple};
}

Position BodyEmitter::LanePosition(llvm::Value* base, int level, int64_t multiple) {
  return {.base = base, .stride = lanes_ == 1 ? 0 : 1, .level = level, .multiple = multiple};
}

Position BodyEmitter::Add(const Position& a, const Position& b) {
  if (a.uniform() && IsConstantZero(a.base)) return b;
  if (b.uniform() && IsConstantZero(b.base)) return a;
  Position sum;
  sum.level = std::max(a.level, b.level);
  if (a.vector || b.vector) {
    sum.vector = Arithmetic(llvm::Instruction::Add, VectorOf(a), VectorOf(b), sum.level);
    return sum;
  }
  sum.base = Arithmetic(llvm::Instruction::Add, a.base, b.base, sum.level);
  sum.stride = a.stride + b.stride;
  sum.multiple = std::gcd(a.multiple, b.multiple);
  return sum;
}

Position BodyEmitter::Multiply(const Position& a, int64_t c) {
  if (c == 1) return a;
  if (c == 0) return ConstantPosition(0);
  Position product;
  product.level = a.level;
  if (a.vector) {
    product.vector = Arithmetic(llvm::Instruction::Mul, a.vector,
                                llvm::ConstantInt::getSigned(a.vector->getType(), c), a.level);
    return product;
  }
  product.base = Arithmetic(llvm::Instruction::Mul, a.base, b_.getInt64(c), a.level);
  product.stride = a.stride * c;
  product.multiple = a.multiple * std::abs(c);
  return product;
}

// The lanes of an affine position stay within one run of `c` if it starts at a multiple of the
// lanes.
Position BodyEmitter::Divide(const Position& a, int64_t c) {
  if (c == 1) return a;
  Position quotient;
  quotient.level = a.level;
  const bool together =
      a.uniform() || (a.stride == 1 && c % lanes_ == 0 && a.multiple % lanes_ == 0);
  if (!a.vector && together) {
    quotient.base = Arithmetic(llvm::Instruction::SDiv, a.base, b_.getInt64(c), a.level);
    return quotient;
  }
  llvm::Value* vector = VectorOf(a);
  quotient.vector = Arithmetic(llvm::Instruction::UDiv, vector,
                               llvm::ConstantInt::get(vector->getType(), c), a.level);
  return quotient;
}

Position BodyEmitter::Remainder(const Position& a, int64_t c) {
  if (c == 1) return ConstantPosition(0);
  Position remainder;
  remainder.level = a.level;
  const bool together =
      a.uniform() || (a.stride == 1 && c % lanes_ == 0 && a.multiple % lanes_ == 0);
  if (!a.vector && together) {
    remainder.base = Arithmetic(llvm::Instruction::SRem, a.base, b_.getInt64(c), a.level);
    remainder.stride = a.stride;
    remainder.multiple = std::gcd(a.multiple, c);
    return remainder;
  }
  llvm::Value* vector = VectorOf(a);
  remainder.vector = Arithmetic(llvm::Instruction::URem, vector,
                                llvm::ConstantInt::get(vector->getType(), c), a.level);
  return remainder;
}

Position BodyEmitter::FromElement(const Element& element, ElementType type, int level,
                                  int64_t limit) {
  At(level);
  llvm::Value* value = element.real;
  llvm::Type* type_of = value->getType();
  const bool is_signed = hlo::IsSignedInteger(type);
  // A narrow type may not be able to say the limit.
  const int bits = type_of->getScalarSizeInBits();
  llvm::Value* zero = llvm::Constant::getNullValue(type_of);
  if (is_signed) value = b_.CreateSelect(b_.CreateICmpSLT(value, zero), zero, value);
  const uint64_t highest =
      bits == 64 ? INT64_MAX : (uint64_t{1} << (bits - (is_signed ? 1 : 0))) - 1;
  if (static_cast<uint64_t>(limit) < highest) {
    llvm::Value* bound = llvm::ConstantInt::get(type_of, limit);
    value = b_.CreateSelect(b_.CreateICmpUGT(value, bound), bound, value);
  }
  Position position;
  position.level = level;
  if (type_of->isVectorTy()) {
    position.vector =
        b_.CreateZExtOrTrunc(value, llvm::FixedVectorType::get(IndexElementType(), lanes_));
  } else {
    position.base = b_.CreateZExtOrTrunc(value, b_.getInt64Ty());
  }
  return position;
}

Index BodyEmitter::SplitAt(const Index& index, const Dimensions& dimensions, int64_t boundary) {
  Index result;
  for (const IndexGroup& group : index) {
    if (boundary <= group.begin || boundary >= group.end) {
      result.push_back(group);
      continue;
    }
    const int64_t inner = Product(dimensions, boundary, group.end);
    const int64_t outer = Product(dimensions, group.begin, boundary);
    Position zero = ConstantPosition(0);
    Position high = inner == 1 ? group.position : outer == 1 ? zero : Divide(group.position, inner);
    Position low = inner == 1   ? zero
                   : outer == 1 ? group.position
                                : Remainder(group.position, inner);
    result.push_back({group.begin, boundary, high});
    result.push_back({boundary, group.end, low});
  }
  return result;
}

Position BodyEmitter::Coordinate(const Index& index, const Dimensions& dimensions,
                                 int64_t dimension) {
  if (dimensions[dimension] == 1) return ConstantPosition(0);
  for (const IndexGroup& group : index) {
    if (dimension < group.begin || dimension >= group.end) continue;
    Position position = group.position;
    const int64_t inner = Product(dimensions, dimension + 1, group.end);
    const int64_t outer = Product(dimensions, group.begin, dimension);
    if (inner != 1) position = Divide(position, inner);
    if (outer != 1) position = Remainder(position, dimensions[dimension]);
    return position;
  }
  throw hlo::Error(hlo::ErrorCode::kInternal, "an index does not cover its dimensions");
}

Position BodyEmitter::Linearize(const Index& index, const Dimensions& dimensions) {
  Position sum = ConstantPosition(0);
  int64_t stride = 1;
  for (auto group = index.rbegin(); group != index.rend(); ++group) {
    sum = Add(Multiply(group->position, stride), sum);
    stride *= Product(dimensions, group->begin, group->end);
  }
  return sum;
}

Index BodyEmitter::Select(const Index& given, const Dimensions& dimensions,
                          const Dimensions& target_dimensions, const std::vector<int64_t>& source) {
  Index index = given;
  Index result;
  const int64_t rank = static_cast<int64_t>(target_dimensions.size());
  for (int64_t i = 0; i < rank;) {
    if (source[i] < 0 || target_dimensions[i] == 1) {
      result.push_back({i, i + 1, ConstantPosition(0)});
      ++i;
      continue;
    }
    const int64_t first = source[i];
    int64_t group_end = 0;
    for (const IndexGroup& group : index) {
      if (first >= group.begin && first < group.end) group_end = group.end;
    }
    int64_t next = i + 1;
    while (next < rank && source[next] == source[next - 1] + 1 && source[next] < group_end &&
           target_dimensions[next] == dimensions[source[next]]) {
      ++next;
    }
    const int64_t last = source[next - 1] + 1;
    index = SplitAt(SplitAt(index, dimensions, first), dimensions, last);
    for (const IndexGroup& group : index) {
      if (group.begin == first) result.push_back({i, next, group.position});
    }
    i = next;
  }
  return result;
}

Index BodyEmitter::ReshapeIndex(const Instruction* reshape, const Index& index) {
  const Dimensions& from = reshape->dimensions();
  const Dimensions& to = reshape->operand(0)->dimensions();
  const int64_t rank = static_cast<int64_t>(to.size());
  Index result;
  if (rank == 0) return result;
  int64_t target = 0;          // next dimension of the operand to cover
  int64_t target_product = 1;  // elements per dimensions before it
  int64_t product = 1;         // of the groups taken so far
  Position sum = ConstantPosition(0);
  for (const IndexGroup& group : index) {
    const int64_t size = Product(from, group.begin, group.end);
    sum = Add(Multiply(sum, size), group.position);
    product *= size;
    int64_t end = target;
    int64_t end_product = target_product;
    while (end < rank && end_product < product) end_product *= to[end++];
    if (end_product == product && end > target) {
      result.push_back({target, end, sum});
      target = end;
      target_product = end_product;
      sum = ConstantPosition(0);
    }
  }
  if (target < rank) result.push_back({target, rank, sum});
  return result;
}

Index BodyEmitter::SliceIndex(const Instruction* slice, Index index) {
  const auto& attributes = slice->as<hlo::SliceAttributes>();
  const Dimensions& from = slice->dimensions();
  const Dimensions& to = slice->operand(0)->dimensions();
  const int64_t rank = static_cast<int64_t>(to.size());
  // Runs of whole dimensions behind a sliced one stay joined to it.
  for (int64_t d = 0; d < rank; ++d) {
    const bool whole = from[d] == to[d];
    if (!whole) index = SplitAt(index, from, d);
    if (!whole && attributes.strides[d] != 1) index = SplitAt(index, from, d + 1);
  }
  Index result;
  for (const IndexGroup& group : index) {
    Position position = group.position;
    const int64_t inner = Product(to, group.begin + 1, group.end);
    const int64_t d = group.begin;
    if (attributes.strides[d] != 1 && from[d] != to[d])
      position = Multiply(position, attributes.strides[d]);
    position = Add(position, attributes.start_indices[d] * inner);
    result.push_back({group.begin, group.end, position});
  }
  return result;
}

Index BodyEmitter::ReverseIndex(const Instruction* reverse, Index index) {
  const Dimensions& dimensions = reverse->dimensions();
  for (int64_t d : reverse->as<hlo::DimensionsAttributes>().dimensions) {
    index = SplitAt(SplitAt(index, dimensions, d), dimensions, d + 1);
    for (IndexGroup& group : index) {
      if (group.begin == d) {
        group.position = Add(Multiply(group.position, -1), dimensions[d] - 1);
      }
    }
  }
  return index;
}

// ---------------------------------------------------------------------------------------------------------
// Masks.

llvm::Value* BodyEmitter::FirstLanes(int64_t count) {
  std::vector<llvm::Constant*> lanes;
  for (int i = 0; i < lanes_; ++i) lanes.push_back(b_.getInt1(i < count));
  return llvm::ConstantVector::get(lanes);
}

BodyEmitter::Mask BodyEmitter::AndMask(const Mask& a, const Mask& b) {
  if (!a.value) return b;
  if (!b.value || a.value == b.value) return a;
  const int level = std::max(a.level, b.level);
  At(level);
  llvm::Value* x = a.value;
  llvm::Value* y = b.value;
  if (x->getType() != y->getType()) {
    if (!x->getType()->isVectorTy()) x = b_.CreateVectorSplat(lanes_, x);
    if (!y->getType()->isVectorTy()) y = b_.CreateVectorSplat(lanes_, y);
  }
  return {Cached(llvm::Instruction::And, x, y, level, [&] { return b_.CreateAnd(x, y); }), level};
}

llvm::Value* BodyEmitter::VectorMask() {
  if (!mask_.value)
    return llvm::ConstantInt::getTrue(llvm::FixedVectorType::get(b_.getInt1Ty(), lanes_));
  if (mask_.value->getType()->isVectorTy()) return mask_.value;
  return b_.CreateVectorSplat(lanes_, mask_.value);
}

BodyEmitter::Mask BodyEmitter::InRange(const Position& position, int64_t limit) {
  int level;
  llvm::Value* value = ToValue(position, &level);
  At(level);
  // Negative positions are large as unsigned numbers.
  return {b_.CreateICmpULT(value, llvm::ConstantInt::get(value->getType(), limit)), level};
}

BodyEmitter::Value BodyEmitter::SelectValue(const Mask& condition, Value on_true, Value on_false,
                                            ElementType type) {
  if (!condition.value) return on_true;
  const int level = std::max({condition.level, on_true.level, on_false.level});
  At(level);
  std::vector<Element> elements = {on_true.element, on_false.element, {condition.value, nullptr}};
  Widen(elements);
  Value result;
  result.level = level;
  result.element.real = b_.CreateSelect(elements[2].real, elements[0].real, elements[1].real);
  if (elements[0].imaginary) {
    result.element.imaginary =
        b_.CreateSelect(elements[2].real, elements[0].imaginary, elements[1].imaginary);
  }
  return result;
}

// ---------------------------------------------------------------------------------------------------------
// Memory.

llvm::Value* BodyEmitter::BufferPointer(int64_t number) {
  llvm::Value* buffers = function_->getArg(0);
  return Cached(kBufferKey, buffers, b_.getInt64(number), 0, [&] {
    llvm::Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), buffers, number);
    llvm::LoadInst* pointer = b_.CreateLoad(b_.getPtrTy(), slot);
    pointer->setMetadata(llvm::LLVMContext::MD_invariant_load,
                         llvm::MDNode::get(b_.getContext(), {}));
    return pointer;
  });
}

// In units of `type`. The mask is obeyed.
llvm::Value* BodyEmitter::LoadPart(llvm::Value* pointer, const Position& linear, llvm::Type* type,
                                   int level) {
  At(level);
  const llvm::Align align(type->getScalarSizeInBits() / 8);
  if (linear.uniform()) {
    llvm::Value* offset = linear.base;
    llvm::Value* mask = mask_.value;
    if (mask && mask->getType()->isVectorTy()) {
      // Some lane counts, or nothing is used and element 0 does no harm.
      mask = llvm::isa<llvm::Constant>(mask) ? nullptr : b_.CreateOrReduce(mask);
    }
    if (mask) offset = b_.CreateSelect(mask, offset, b_.getInt64(0));
    return b_.CreateAlignedLoad(type, b_.CreateInBoundsGEP(type, pointer, offset), align);
  }
  auto* vector = llvm::FixedVectorType::get(type, lanes_);
  if (linear.stride == 1 && !linear.vector) {
    llvm::Value* address = b_.CreateGEP(type, pointer, linear.base);
    if (!mask_.value) return b_.CreateAlignedLoad(vector, address, align);
    return b_.CreateMaskedLoad(vector, address, align, VectorMask(),
                               llvm::Constant::getNullValue(vector));
  }
  if (linear.stride == -1 && !linear.vector && !mask_.value) {
    llvm::Value* lowest = b_.CreateSub(linear.base, b_.getInt64(lanes_ - 1));
    return b_.CreateVectorReverse(
        b_.CreateAlignedLoad(vector, b_.CreateGEP(type, pointer, lowest), align));
  }
  llvm::Value* offsets = VectorOf(linear);
  At(level);
  const int bits = type->getScalarSizeInBits();
  if (bits < 32 && !mask_.value) {
    llvm::Value* result = llvm::PoisonValue::get(vector);
    for (int i = 0; i < lanes_; ++i) {
      llvm::Value* offset = b_.CreateSExt(b_.CreateExtractElement(offsets, i), b_.getInt64Ty());
      llvm::Value* element = b_.CreateAlignedLoad(type, b_.CreateGEP(type, pointer, offset), align);
      result = b_.CreateInsertElement(result, element, i);
    }
    return result;
  }
  llvm::Value* addresses = b_.CreateGEP(type, pointer, offsets);
  return b_.CreateMaskedGather(vector, addresses, align, VectorMask(),
                               llvm::Constant::getNullValue(vector));
}

BodyEmitter::Value BodyEmitter::Load(llvm::Value* pointer, const Position& linear,
                                     ElementType type) {
  Value result;
  // A load under a mask, or in a loop that stores, is emitted where it is used; one that every lane
  // shares moves out with its position.
  result.level = std::max(linear.level, mask_.value ? mask_.level : 0);
  llvm::Type* part = MemoryType(b_.getContext(), type);
  At(result.level);
  if (!hlo::IsComplex(type)) {
    result.element = {elementwise_.FromMemory(LoadPart(pointer, linear, part, result.level), type)};
    return result;
  }
  if (!linear.vector && linear.stride == 1 && !mask_.value) {
    auto* pairs = llvm::FixedVectorType::get(part, lanes_ * 2);
    llvm::Value* address = b_.CreateGEP(part, pointer, b_.CreateMul(linear.base, b_.getInt64(2)));
    llvm::Value* both =
        b_.CreateAlignedLoad(pairs, address, llvm::Align(part->getScalarSizeInBits() / 8));
    std::vector<int> even, odd;
    for (int i = 0; i < lanes_; ++i) {
      even.push_back(2 * i);
      odd.push_back(2 * i + 1);
    }
    result.element = {b_.CreateShuffleVector(both, even), b_.CreateShuffleVector(both, odd)};
    return result;
  }
  Position real = Multiply(linear, 2);
  Position imaginary = Add(real, 1);
  result.element.real = LoadPart(pointer, real, part, result.level);
  result.element.imaginary = LoadPart(pointer, imaginary, part, result.level);
  return result;
}

void BodyEmitter::Store(llvm::Value* pointer, const Position& linear, const Element& element,
                        ElementType type) {
  llvm::Type* part = MemoryType(b_.getContext(), type);
  const llvm::Align align(part->getScalarSizeInBits() / 8);
  const bool complex = hlo::IsComplex(type);
  std::vector<llvm::Value*> parts = {element.real};
  if (complex) parts.push_back(element.imaginary);
  for (size_t i = 0; i < parts.size(); ++i) {
    Position at = complex ? Add(Multiply(linear, 2), static_cast<int64_t>(i)) : linear;
    llvm::Value* offsets = at.uniform() || (!at.vector && at.stride == 1) ? nullptr : VectorOf(at);
    AtInnermost();
    llvm::Value* value = elementwise_.ToMemory(parts[i], type);
    if (at.uniform()) {
      b_.CreateAlignedStore(value, b_.CreateGEP(part, pointer, at.base), align);
      continue;
    }
    if (!value->getType()->isVectorTy()) value = b_.CreateVectorSplat(lanes_, value);
    if (!offsets) {
      llvm::Value* address = b_.CreateGEP(part, pointer, at.base);
      if (mask_.value) {
        b_.CreateMaskedStore(value, address, align, VectorMask());
      } else {
        b_.CreateAlignedStore(value, address, align);
      }
    } else {
      b_.CreateMaskedScatter(value, b_.CreateGEP(part, pointer, offsets), align, VectorMask());
    }
  }
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
    if (instruction->opcode() == Opcode::kComposite || instruction->opcode() == Opcode::kCall) {
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
  const Dimensions& dimensions = instruction->dimensions();
  switch (instruction->opcode()) {
    case Opcode::kParameter: {
      Position linear = Linearize(index, dimensions);
      return Load(BufferPointer(instruction->parameter_number()), linear,
                  instruction->element_type());
    }
    case Opcode::kConstant:
      return {elementwise_.Constant(instruction->literal(), 0), 0};
    case Opcode::kIota:
      return EvaluateIota(instruction, index);
    case Opcode::kBroadcastInDim: {
      const auto& map = instruction->as<hlo::DimensionsAttributes>().dimensions;
      std::vector<int64_t> source(map.begin(), map.end());
      for (size_t i = 0; i < source.size(); ++i) {
        if (operand->dimensions()[i] == 1) source[i] = -1;
      }
      return Evaluate(operand, Select(index, dimensions, operand->dimensions(), source));
    }
    case Opcode::kReshape:
      return Evaluate(operand, ReshapeIndex(instruction, index));
    case Opcode::kTranspose: {
      const auto& permutation = instruction->as<hlo::DimensionsAttributes>().dimensions;
      std::vector<int64_t> source(permutation.size());
      for (size_t i = 0; i < permutation.size(); ++i) source[permutation[i]] = i;
      return Evaluate(operand, Select(index, dimensions, operand->dimensions(), source));
    }
    case Opcode::kSlice:
      return Evaluate(operand, SliceIndex(instruction, index));
    case Opcode::kReverse:
      return Evaluate(operand, ReverseIndex(instruction, index));
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
  Value result;
  std::vector<Element> operands;
  for (const Instruction* operand : instruction->operands()) {
    Value value = Evaluate(operand, operand->shape().rank() == 0 ? Index{} : index);
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

BodyEmitter::Value BodyEmitter::EvaluatePad(const Instruction* instruction, const Index& given) {
  const auto& attributes = instruction->as<hlo::PadAttributes>();
  const Instruction* operand = instruction->operand(0);
  const Dimensions& from = instruction->dimensions();
  const Dimensions& to = operand->dimensions();
  Index index = given;
  const int64_t rank = static_cast<int64_t>(from.size());
  auto padded = [&](int64_t d) {
    return attributes.edge_padding_low[d] != 0 || attributes.edge_padding_high[d] != 0 ||
           attributes.interior_padding[d] != 0;
  };
  for (int64_t d = 0; d < rank; ++d) {
    if (padded(d)) index = SplitAt(SplitAt(index, from, d), from, d + 1);
  }
  Mask inside;
  for (IndexGroup& group : index) {
    const int64_t d = group.begin;
    if (group.end != d + 1 || !padded(d)) continue;
    Position position = Add(group.position, -attributes.edge_padding_low[d]);
    const int64_t step = attributes.interior_padding[d] + 1;
    if (step > 1) {
      inside = AndMask(inside, InRange(position, (to[d] - 1) * step + 1));
      // Positions below zero are out of range already; moving them up keeps the division's operands
      // positive.
      Position shifted =
          Add(position, (attributes.edge_padding_low[d] > 0
                             ? (attributes.edge_padding_low[d] + step - 1) / step * step
                             : 0));
      inside = AndMask(inside, InRange(Remainder(shifted, step), 1));
      position =
          Add(Divide(shifted, step), attributes.edge_padding_low[d] > 0
                                         ? -((attributes.edge_padding_low[d] + step - 1) / step)
                                         : 0);
    } else {
      inside = AndMask(inside, InRange(position, to[d]));
    }
    group.position = position;
  }
  Mask saved = mask_;
  mask_ = AndMask(mask_, inside);
  Value value = Evaluate(operand, index);
  mask_ = saved;
  return SelectValue(inside, value, Evaluate(instruction->operand(1), {}),
                     instruction->element_type());
}

BodyEmitter::Value BodyEmitter::EvaluateReduceWindow(const Instruction* instruction, int64_t result,
                                                     const Index& given) {
  const auto& window = instruction->as<hlo::Window>();
  const size_t count = instruction->operand_count() / 2;
  const Dimensions& to = instruction->operand(0)->dimensions();
  const Dimensions& from = instruction->shape().is_tuple()
                               ? instruction->shape().tuple_shapes()[0].dimensions()
                               : instruction->dimensions();
  const int64_t rank = static_cast<int64_t>(to.size());
  auto at = [](const Dimensions& list, int64_t d, int64_t otherwise) {
    return list.empty() ? otherwise : list[d];
  };
  Index index = given;
  std::vector<int64_t> windowed;
  for (int64_t d = 0; d < rank; ++d) {
    const bool trivial = window.dimensions[d] == 1 && at(window.strides, d, 1) == 1 &&
                         at(window.padding_low, d, 0) == 0 && at(window.padding_high, d, 0) == 0 &&
                         at(window.base_dilations, d, 1) == 1;
    if (trivial) continue;
    windowed.push_back(d);
    index = SplitAt(SplitAt(index, from, d), from, d + 1);
  }
  std::vector<Element> accumulators;
  for (size_t i = 0; i < count; ++i)
    accumulators.push_back(Evaluate(instruction->operand(count + i), {}).element);
  AtInnermost();
  Widen(accumulators, lanes_ > 1);
  // Combines the elements at one window position, given by its coordinates.
  auto combine = [&](const std::vector<Position>& offsets, std::vector<Element> sums) {
    Index inner = index;
    Mask inside;
    for (size_t w = 0; w < windowed.size(); ++w) {
      const int64_t d = windowed[w];
      for (IndexGroup& group : inner) {
        if (group.begin != d) continue;
        const int64_t low = at(window.padding_low, d, 0);
        const int64_t dilation = at(window.base_dilations, d, 1);
        Position position = Add(Multiply(group.position, at(window.strides, d, 1)),
                                Multiply(offsets[w], at(window.window_dilations, d, 1)));
        position = Add(position, -low);
        if (dilation == 1) {
          if (low != 0 || at(window.padding_high, d, 0) > 0)
            inside = AndMask(inside, InRange(position, to[d]));
        } else {
          inside = AndMask(inside, InRange(position, (to[d] - 1) * dilation + 1));
          const int64_t shift = low > 0 ? (low + dilation - 1) / dilation : 0;
          Position shifted = Add(position, shift * dilation);
          inside = AndMask(inside, InRange(Remainder(shifted, dilation), 1));
          position = Add(Divide(shifted, dilation), -shift);
        }
        group.position = position;
      }
    }
    Mask saved = mask_;
    mask_ = AndMask(saved, inside);
    std::vector<Element> arguments = sums;
    for (size_t i = 0; i < count; ++i)
      arguments.push_back(Evaluate(instruction->operand(i), inner).element);
    mask_ = saved;
    AtInnermost();
    Widen(arguments);
    std::vector<Element> next = Apply(*instruction->called_computations()[0], arguments);
    for (size_t i = 0; i < count && inside.value; ++i) {
      std::vector<Element> choice = {next[i], sums[i], {inside.value, nullptr}};
      Widen(choice);
      next[i].real = b_.CreateSelect(choice[2].real, choice[0].real, choice[1].real);
      if (choice[0].imaginary) {
        next[i].imaginary =
            b_.CreateSelect(choice[2].real, choice[0].imaginary, choice[1].imaginary);
      }
    }
    if (lanes_ > 1) {
      for (Element& element : next) element = Splat(element);
    }
    return next;
  };
  int64_t positions = 1;
  for (int64_t d : windowed) positions *= window.dimensions[d];
  if (positions <= 36) {
    for (int64_t p = 0; p < positions; ++p) {
      std::vector<Position> offsets(windowed.size());
      int64_t rest = p;
      for (size_t w = windowed.size(); w-- > 0;) {
        offsets[w] = ConstantPosition(rest % window.dimensions[windowed[w]]);
        rest /= window.dimensions[windowed[w]];
      }
      accumulators = combine(offsets, accumulators);
    }
  } else {
    Accumulators initial;
    for (const Element& element : accumulators) {
      initial.push_back(element.real);
      if (element.imaginary) initial.push_back(element.imaginary);
    }
    auto unpack = [&](const Accumulators& values) {
      std::vector<Element> elements = accumulators;
      size_t next = 0;
      for (Element& element : elements) {
        element.real = values[next++];
        if (element.imaginary) element.imaginary = values[next++];
      }
      return elements;
    };
    Accumulators sums = Loop(b_.getInt64(0), b_.getInt64(positions), 1, initial,
                             [&](llvm::Value* variable, const Accumulators& current) {
                               std::vector<Position> offsets(windowed.size());
                               Position rest = ScalarPosition(variable, level());
                               for (size_t w = windowed.size(); w-- > 0;) {
                                 const int64_t size = window.dimensions[windowed[w]];
                                 offsets[w] = w == 0 ? rest : Remainder(rest, size);
                                 if (w > 0) rest = Divide(rest, size);
                               }
                               Accumulators next;
                               for (const Element& element : combine(offsets, unpack(current))) {
                                 next.push_back(element.real);
                                 if (element.imaginary) next.push_back(element.imaginary);
                               }
                               return next;
                             });
    accumulators = unpack(sums);
  }
  return {accumulators[result], level()};
}

BodyEmitter::Value BodyEmitter::EvaluateConcatenate(const Instruction* instruction,
                                                    const Index& given) {
  const int64_t d = instruction->as<hlo::DimensionAttributes>().dimension;
  const Dimensions& from = instruction->dimensions();
  Index index = SplitAt(SplitAt(given, from, d), from, d + 1);
  Mask saved = mask_;
  Value result;
  int64_t start = 0;
  for (const Instruction* operand : instruction->operands()) {
    const int64_t size = operand->dimensions()[d];
    if (size == 0) continue;
    Index inner = index;
    Mask inside;
    for (IndexGroup& group : inner) {
      if (group.begin != d) continue;
      group.position = Add(group.position, -start);
      inside = InRange(group.position, size);
    }
    mask_ = AndMask(saved, inside);
    Value value = Evaluate(operand, inner);
    mask_ = saved;
    result = start == 0 ? value : SelectValue(inside, value, result, instruction->element_type());
    start += size;
  }
  return result;
}

BodyEmitter::Value BodyEmitter::EvaluateDynamicSlice(const Instruction* instruction,
                                                     const Index& given) {
  const Instruction* operand = instruction->operand(0);
  const Dimensions& from = instruction->dimensions();
  const Dimensions& to = operand->dimensions();
  Index index = given;
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != to[d]) index = SplitAt(index, from, d);
  }
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == to[d]) continue;
    Value start = Evaluate(instruction->operand(d + 1), {});
    Position offset = FromElement(start.element, instruction->operand(d + 1)->element_type(),
                                  start.level, to[d] - from[d]);
    for (IndexGroup& group : index) {
      if (group.begin != static_cast<int64_t>(d)) continue;
      group.position = Add(group.position, Multiply(offset, Product(to, d + 1, group.end)));
    }
  }
  return Evaluate(operand, index);
}

BodyEmitter::Value BodyEmitter::EvaluateDynamicUpdateSlice(const Instruction* instruction,
                                                           const Index& given) {
  const Instruction* operand = instruction->operand(0);
  const Instruction* update = instruction->operand(1);
  const Dimensions& from = instruction->dimensions();
  const Dimensions& to = update->dimensions();
  Index index = given;
  Mask inside;
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == to[d]) continue;
    Value start = Evaluate(instruction->operand(d + 2), {});
    Position offset = FromElement(start.element, instruction->operand(d + 2)->element_type(),
                                  start.level, from[d] - to[d]);
    index = SplitAt(SplitAt(index, from, d), from, d + 1);
    for (IndexGroup& group : index) {
      if (group.begin != static_cast<int64_t>(d)) continue;
      group.position = Add(group.position, Multiply(offset, -1));
      inside = AndMask(inside, InRange(group.position, to[d]));
    }
  }
  Mask saved = mask_;
  mask_ = AndMask(mask_, inside);
  Value value = Evaluate(update, index);
  mask_ = saved;
  if (!inside.value) return value;
  return SelectValue(inside, value, Evaluate(operand, given), instruction->element_type());
}

BodyEmitter::Value BodyEmitter::EvaluateGather(const Instruction* instruction, const Index& index) {
  const auto& attributes = instruction->as<hlo::GatherAttributes>();
  const Instruction* operand = instruction->operand(0);
  const Instruction* starts = instruction->operand(1);
  const Dimensions& from = instruction->dimensions();
  const Dimensions& to = operand->dimensions();
  auto contains = [](const Dimensions& list, int64_t d) {
    return std::find(list.begin(), list.end(), d) != list.end();
  };
  // The output's batch dimensions are those of the start indices without the index vector's.
  std::vector<int64_t> batch;
  for (size_t d = 0; d < from.size(); ++d) {
    if (!contains(attributes.offset_dims, d)) batch.push_back(d);
  }
  const Dimensions& start_dimensions = starts->dimensions();
  std::vector<int64_t> source;
  size_t next = 0;
  for (size_t d = 0; d < start_dimensions.size(); ++d) {
    source.push_back(static_cast<int64_t>(d) == attributes.index_vector_dim ? -1 : batch[next++]);
  }
  Index start_index = Select(index, from, start_dimensions, source);
  Index result(to.size());
  size_t offset = 0;
  for (size_t d = 0; d < to.size(); ++d) {
    const bool batching = contains(attributes.operand_batching_dims, d);
    const bool collapsed = contains(attributes.collapsed_slice_dims, d);
    Position position = ConstantPosition(0);
    if (batching) {
      size_t which = std::find(attributes.operand_batching_dims.begin(),
                               attributes.operand_batching_dims.end(), static_cast<int64_t>(d)) -
                     attributes.operand_batching_dims.begin();
      int64_t start_dimension = attributes.start_indices_batching_dims[which];
      position = Coordinate(index, from, source[start_dimension]);
    } else if (!collapsed) {
      position = Coordinate(index, from, attributes.offset_dims[offset++]);
    }
    for (size_t k = 0; k < attributes.start_index_map.size(); ++k) {
      if (attributes.start_index_map[k] != static_cast<int64_t>(d)) continue;
      Index at = start_index;
      for (IndexGroup& group : at) {
        if (group.begin == attributes.index_vector_dim) group.position = ConstantPosition(k);
      }
      Value start = Evaluate(starts, at);
      position = Add(position, FromElement(start.element, starts->element_type(), start.level,
                                           to[d] - attributes.slice_sizes[d]));
    }
    result[d] = {static_cast<int64_t>(d), static_cast<int64_t>(d) + 1, position};
  }
  return Evaluate(operand, result);
}

}  // namespace cpu
