#include "cpu/emit/body_emitter.h"

#include <llvm/IR/Intrinsics.h>

// Masks, and reading and writing memory under them.

namespace cpu {

using hlo::ElementType;

// ---------------------------------------------------------------------------------------------------------
// Masks.

llvm::Value* BodyEmitter::FirstLanes(const Extent& count) {
  if (count.varies) {
    llvm::Value* lanes = LaneVector();
    llvm::Value* end = NumberLike(count, lanes);
    AtInnermost();
    return b_.CreateICmpULT(lanes, end);
  }
  std::vector<llvm::Constant*> lanes;
  for (int i = 0; i < lanes_; ++i) lanes.push_back(b_.getInt1(i < count.value));
  return llvm::ConstantVector::get(lanes);
}

llvm::Value* BodyEmitter::FirstLanes(llvm::Value* count) {
  llvm::Value* end = SplatIndex(count, level());
  AtInnermost();
  return b_.CreateICmpULT(LaneVector(), end);
}

BodyEmitter::Mask BodyEmitter::AndMask(const Mask& a, const Mask& b) {
  if (!a.value) return b;
  if (!b.value || a.value == b.value || IsNever(a)) return a;
  if (IsNever(b)) return b;
  const int level = std::max(a.level, b.level);
  At(level);
  const auto both = [&](llvm::Value* x, llvm::Value* y) {
    return Cached(llvm::Instruction::And, x, y, level, [&] { return b_.CreateAnd(x, y); });
  };
  llvm::Value* shared = a.shared ? a.shared : b.shared;
  if (a.shared && b.shared) shared = both(a.shared, b.shared);
  llvm::Value* x = a.value;
  llvm::Value* y = b.value;
  if (x->getType() != y->getType()) {
    if (!x->getType()->isVectorTy()) x = b_.CreateVectorSplat(lanes_, x);
    if (!y->getType()->isVectorTy()) y = b_.CreateVectorSplat(lanes_, y);
  }
  return {both(x, y), level, shared};
}

llvm::Value* BodyEmitter::VectorMask() {
  if (!mask_.value)
    return llvm::ConstantInt::getTrue(llvm::FixedVectorType::get(b_.getInt1Ty(), lanes_));
  if (mask_.value->getType()->isVectorTy()) return mask_.value;
  return b_.CreateVectorSplat(lanes_, mask_.value);
}

bool BodyEmitter::IsNever(const Mask& mask) {
  const auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(mask.value);
  return constant != nullptr && constant->isNullValue();
}

BodyEmitter::Mask BodyEmitter::InRange(const Position& position, const Extent& limit) {
  if (position.bounds && !limit.varies) {
    if (position.bounds->low >= 0 && position.bounds->high < limit.value) return {};
    if (position.bounds->high < 0 || position.bounds->low >= limit.value) return {b_.getFalse(), 0};
  }
  int level;
  llvm::Value* value = ToValue(position, &level);
  llvm::Value* end = NumberLike(limit, value);
  At(level);
  // Negative positions are large as unsigned numbers.
  llvm::Value* inside = b_.CreateICmpULT(value, end);
  return {inside, level, inside->getType()->isVectorTy() ? nullptr : inside};
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

// Where a load under the mask begins. One of which no lane counts is not to point anywhere: from
// outside of what is mapped, processors take hundreds of times as long to read nothing.
llvm::Value* BodyEmitter::WhereCounted(llvm::Value* offset) {
  if (!mask_.shared) return offset;
  return b_.CreateSelect(mask_.shared, offset, b_.getInt64(0));
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
    llvm::Value* address = b_.CreateGEP(type, pointer, WhereCounted(linear.base));
    if (!mask_.value) return b_.CreateAlignedLoad(vector, address, align);
    return b_.CreateMaskedLoad(vector, address, align, VectorMask(),
                               llvm::Constant::getNullValue(vector));
  }
  if (linear.stride == -1 && !linear.vector) {
    llvm::Value* lowest = b_.CreateSub(linear.base, b_.getInt64(lanes_ - 1));
    llvm::Value* address = b_.CreateGEP(type, pointer, WhereCounted(lowest));
    if (!mask_.value) return b_.CreateVectorReverse(b_.CreateAlignedLoad(vector, address, align));
    return b_.CreateVectorReverse(b_.CreateMaskedLoad(vector, address, align,
                                                      b_.CreateVectorReverse(VectorMask()),
                                                      llvm::Constant::getNullValue(vector)));
  }
  // Every other element: of two vectors, the second of which ends at the last one.
  if (linear.stride == 2 && !linear.vector && !mask_.value) {
    llvm::Value* parts[2];
    for (int i = 0; i < 2; ++i) {
      llvm::Value* begin = b_.CreateAdd(linear.base, b_.getInt64(i * (lanes_ - 1)));
      parts[i] = b_.CreateAlignedLoad(vector, b_.CreateGEP(type, pointer, begin), align);
    }
    std::vector<int> even;
    for (int i = 0; i < lanes_; ++i) even.push_back(2 * i < lanes_ ? 2 * i : 2 * i + 1);
    return b_.CreateShuffleVector(parts[0], parts[1], even);
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
  if (!linear.vector && linear.stride == 1) {
    auto* pairs = llvm::FixedVectorType::get(part, lanes_ * 2);
    llvm::Value* base = b_.CreateMul(linear.base, b_.getInt64(2));
    llvm::Value* address = b_.CreateGEP(part, pointer, WhereCounted(base));
    const llvm::Align align(part->getScalarSizeInBits() / 8);
    std::vector<int> even, odd, twice;
    for (int i = 0; i < lanes_; ++i) {
      even.push_back(2 * i);
      odd.push_back(2 * i + 1);
      twice.insert(twice.end(), 2, i);
    }
    llvm::Value* both =
        mask_.value ? static_cast<llvm::Value*>(b_.CreateMaskedLoad(
                          pairs, address, align, b_.CreateShuffleVector(VectorMask(), twice),
                          llvm::Constant::getNullValue(pairs)))
                    : b_.CreateAlignedLoad(pairs, address, align);
    result.element = {b_.CreateShuffleVector(both, even), b_.CreateShuffleVector(both, odd)};
    return result;
  }
  Position real = Multiply(linear, 2);
  Position imaginary = Add(real, 1);
  result.element.real = LoadPart(pointer, real, part, result.level);
  result.element.imaginary = LoadPart(pointer, imaginary, part, result.level);
  return result;
}

// Complex numbers beside each other, whose parts alternate in memory.
void BodyEmitter::StorePairs(llvm::Value* pointer, const Position& linear, const Element& element,
                             llvm::Type* part) {
  AtInnermost();
  const Element wide = Splat(element);
  std::vector<int> alternating, twice;
  for (int i = 0; i < lanes_; ++i) {
    alternating.insert(alternating.end(), {i, lanes_ + i});
    twice.insert(twice.end(), 2, i);
  }
  llvm::Value* pairs = b_.CreateShuffleVector(wide.real, wide.imaginary, alternating);
  llvm::Value* address = b_.CreateGEP(part, pointer, b_.CreateMul(linear.base, b_.getInt64(2)));
  const llvm::Align align(part->getScalarSizeInBits() / 8);
  if (!mask_.value) {
    b_.CreateAlignedStore(pairs, address, align);
  } else {
    b_.CreateMaskedStore(pairs, address, align, b_.CreateShuffleVector(VectorMask(), twice));
  }
}

void BodyEmitter::Store(llvm::Value* pointer, const Position& linear, const Element& element,
                        ElementType type) {
  llvm::Type* part = MemoryType(b_.getContext(), type);
  const llvm::Align align(part->getScalarSizeInBits() / 8);
  const bool complex = hlo::IsComplex(type);
  if (complex && !linear.vector && linear.stride == 1)
    return StorePairs(pointer, linear, element, part);
  std::vector<llvm::Value*> parts = {element.real};
  if (complex) parts.push_back(element.imaginary);
  for (size_t i = 0; i < parts.size(); ++i) {
    Position at = complex ? Add(Multiply(linear, 2), static_cast<int64_t>(i)) : linear;
    llvm::Value* offsets = at.uniform() || (!at.vector && at.stride == 1) ? nullptr : VectorOf(at);
    AtInnermost();
    llvm::Value* value = elementwise_.ToMemory(parts[i], type);
    if (at.uniform()) {
      // The same in every lane: a window's sum, for instance, is one vector even at one position.
      if (value->getType()->isVectorTy()) value = b_.CreateExtractElement(value, uint64_t{0});
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

}  // namespace cpu
