#include "cpu/emit/body_emitter.h"
#include "hlo/error.h"

#include <numeric>
#include <utility>

// Where the lanes stand: the arithmetic of positions, and how an operation moves an index.

namespace cpu {
namespace {

bool IsConstantZero(llvm::Value* value) {
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant && constant->isZero();
}

using MaybeBounds = std::optional<Position::Bounds>;

MaybeBounds SumOf(const MaybeBounds& a, const MaybeBounds& b) {
  Position::Bounds sum;
  if (!a || !b || __builtin_add_overflow(a->low, b->low, &sum.low) ||
      __builtin_add_overflow(a->high, b->high, &sum.high)) {
    return std::nullopt;
  }
  return sum;
}

MaybeBounds ProductOf(const MaybeBounds& a, const Extent& c) {
  Position::Bounds product;
  if (!a || c.varies || __builtin_mul_overflow(a->low, c.value, &product.low) ||
      __builtin_mul_overflow(a->high, c.value, &product.high)) {
    return std::nullopt;
  }
  if (c.value < 0) std::swap(product.low, product.high);
  return product;
}

}  // namespace

using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;

using BinaryOp = llvm::Instruction::BinaryOps;

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

llvm::Value* BodyEmitter::Number(const Extent& number) {
  if (!number.varies) return b_.getInt64(number.value);
  llvm::Value* slots =
      BufferPointer(static_cast<int64_t>(body_.parameters().size() + body_.results().size()));
  const int32_t slot = sizes_.Slot(number);
  return Cached(kSlotKey, slots, b_.getInt64(slot), 0, [&] {
    llvm::Value* address = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), slots, slot);
    llvm::LoadInst* value = b_.CreateLoad(b_.getInt64Ty(), address);
    value->setMetadata(llvm::LLVMContext::MD_invariant_load,
                       llvm::MDNode::get(b_.getContext(), {}));
    return value;
  });
}

llvm::Value* BodyEmitter::NumberLike(const Extent& number, llvm::Value* like) {
  if (!number.varies) return llvm::ConstantInt::getSigned(like->getType(), number.value);
  llvm::Value* scalar = Number(number);
  return like->getType()->isVectorTy() ? SplatIndex(scalar, 0) : scalar;
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

Position BodyEmitter::ConstantPosition(const Extent& value) {
  Position position{.base = Number(value), .multiple = value.divisor};
  if (!value.varies) position.bounds = {value.value, value.value};
  return position;
}

Position BodyEmitter::ScalarPosition(llvm::Value* value, int level, int64_t multiple) {
  return {.base = value, .level = level, .multiple = multiple};
}

Position BodyEmitter::LanePosition(llvm::Value* base, int level, int64_t multiple) {
  return {.base = base, .stride = lanes_ == 1 ? 0 : 1, .level = level, .multiple = multiple};
}

Position BodyEmitter::LanesFrom(Position base) const {
  if (lanes_ == 1) return base;
  base.stride = 1;
  base.bounds.reset();
  return base;
}

Position BodyEmitter::Add(const Position& a, const Position& b) {
  if (a.uniform() && IsConstantZero(a.base)) return b;
  if (b.uniform() && IsConstantZero(b.base)) return a;
  Position sum;
  sum.level = std::max(a.level, b.level);
  sum.bounds = SumOf(a.bounds, b.bounds);
  if (a.vector || b.vector) {
    sum.vector = Arithmetic(llvm::Instruction::Add, VectorOf(a), VectorOf(b), sum.level);
    return sum;
  }
  sum.base = Arithmetic(llvm::Instruction::Add, a.base, b.base, sum.level);
  sum.stride = a.stride + b.stride;
  sum.multiple = std::gcd(a.multiple, b.multiple);
  return sum;
}

// The distance between lanes of an affine position is a constant.
Position BodyEmitter::Multiply(const Position& a, const Extent& c) {
  if (c.Is(1)) return a;
  if (c.Is(0)) return ConstantPosition(0);
  if (c.varies && a.uniform() && IsConstantZero(a.base)) return a;
  Position product;
  product.level = a.level;
  product.bounds = ProductOf(a.bounds, c);
  if (a.vector || (c.varies && a.stride != 0)) {
    llvm::Value* vector = VectorOf(a);
    llvm::Value* factor = NumberLike(c, vector);
    product.vector = Arithmetic(llvm::Instruction::Mul, vector, factor, a.level);
    return product;
  }
  product.base = Arithmetic(llvm::Instruction::Mul, a.base, Number(c), a.level);
  product.stride = a.stride * c.value;
  product.multiple = a.multiple * c.divisor;
  return product;
}

// The lanes of an affine position stay within one run of `c` if it starts at a multiple of the
// lanes.
Position BodyEmitter::Divide(const Position& a, const Extent& c) {
  if (c.Is(1)) return a;
  Position quotient;
  quotient.level = a.level;
  const bool together =
      a.uniform() || (a.stride == 1 && c.divisor % lanes_ == 0 && a.multiple % lanes_ == 0);
  if (!a.vector && together) {
    quotient.base = Arithmetic(llvm::Instruction::SDiv, a.base, Number(c), a.level);
    return quotient;
  }
  llvm::Value* vector = VectorOf(a);
  llvm::Value* divisor = NumberLike(c, vector);
  quotient.vector = Arithmetic(llvm::Instruction::UDiv, vector, divisor, a.level);
  return quotient;
}

Position BodyEmitter::Remainder(const Position& a, const Extent& c) {
  if (c.Is(1)) return ConstantPosition(0);
  Position remainder;
  remainder.level = a.level;
  const bool together =
      a.uniform() || (a.stride == 1 && c.divisor % lanes_ == 0 && a.multiple % lanes_ == 0);
  if (!a.vector && together) {
    remainder.base = Arithmetic(llvm::Instruction::SRem, a.base, Number(c), a.level);
    remainder.stride = a.stride;
    remainder.multiple = std::gcd(a.multiple, c.divisor);
    return remainder;
  }
  llvm::Value* vector = VectorOf(a);
  llvm::Value* divisor = NumberLike(c, vector);
  remainder.vector = Arithmetic(llvm::Instruction::URem, vector, divisor, a.level);
  return remainder;
}

Position BodyEmitter::FromElement(const Element& element, ElementType type, int level,
                                  const Extent& limit) {
  llvm::Value* number = Number(limit);
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
  if (IsLess(limit, static_cast<int64_t>(highest))) {
    llvm::Value* bound = b_.CreateZExtOrTrunc(number, type_of->getScalarType());
    if (type_of->isVectorTy()) bound = b_.CreateVectorSplat(lanes_, bound);
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
    const Extent inner = Product(dimensions, boundary, group.end);
    const Extent outer = Product(dimensions, group.begin, boundary);
    Position zero = ConstantPosition(0);
    Position high = inner.Is(1)   ? group.position
                    : outer.Is(1) ? zero
                                  : Divide(group.position, inner);
    Position low = inner.Is(1)   ? zero
                   : outer.Is(1) ? group.position
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
    const Extent outer = Product(dimensions, group.begin, dimension);
    position = Divide(position, Product(dimensions, dimension + 1, group.end));
    if (!outer.Is(1)) position = Remainder(position, Size(dimensions[dimension]));
    return position;
  }
  throw hlo::Error(hlo::ErrorCode::kInternal, "an index does not cover its dimensions");
}

Position BodyEmitter::Linearize(const Index& index, const Dimensions& dimensions) {
  Position sum = ConstantPosition(0);
  Extent stride(1);
  for (auto group = index.rbegin(); group != index.rend(); ++group) {
    sum = Add(Multiply(group->position, stride), sum);
    stride = stride * Product(dimensions, group->begin, group->end);
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

std::optional<Index> BodyEmitter::OperandIndex(const Instruction* instruction, const Index& index) {
  using hlo::Opcode;
  switch (instruction->opcode()) {
    case Opcode::kBroadcastInDim: {
      const Dimensions& to = instruction->operand(0)->dimensions();
      const auto& map = instruction->as<hlo::DimensionsAttributes>().dimensions;
      std::vector<int64_t> source(map.begin(), map.end());
      for (size_t i = 0; i < source.size(); ++i) {
        if (to[i] == 1) source[i] = -1;
      }
      return Select(index, instruction->dimensions(), to, source);
    }
    case Opcode::kTranspose: {
      const auto& permutation = instruction->as<hlo::DimensionsAttributes>().dimensions;
      std::vector<int64_t> source(permutation.size());
      for (size_t i = 0; i < permutation.size(); ++i) source[permutation[i]] = i;
      return Select(index, instruction->dimensions(), instruction->operand(0)->dimensions(),
                    source);
    }
    case Opcode::kReshape:
      return ReshapeIndex(instruction, index);
    case Opcode::kSlice:
      return SliceIndex(instruction, index);
    case Opcode::kReverse:
      return ReverseIndex(instruction, index);
    default:
      return std::nullopt;
  }
}

Index BodyEmitter::ReshapeIndex(const Instruction* reshape, const Index& index) {
  const Dimensions& from = reshape->dimensions();
  const Dimensions& to = reshape->operand(0)->dimensions();
  const int64_t rank = static_cast<int64_t>(to.size());
  Index result;
  if (rank == 0) return result;
  int64_t target = 0;        // next dimension of the operand to cover
  Extent target_product(1);  // elements per dimensions before it
  Extent product(1);         // of the groups taken so far
  Position sum = ConstantPosition(0);
  for (const IndexGroup& group : index) {
    const Extent size = Product(from, group.begin, group.end);
    sum = Add(Multiply(sum, size), group.position);
    product = product * size;
    int64_t end = target;
    Extent end_product = target_product;
    while (end < rank && IsLess(end_product, product)) end_product = end_product * Size(to[end++]);
    if (end > target && IsEqual(end_product, product)) {
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
  if (rank == 0) return index;
  // Runs of whole dimensions behind a sliced one stay joined to it.
  for (int64_t d = 0; d < rank; ++d) {
    const bool whole = from[d] == to[d];
    if (!whole) index = SplitAt(index, from, d);
    if (!whole && attributes.strides[d] != 1) index = SplitAt(index, from, d + 1);
  }
  Index result;
  for (const IndexGroup& group : index) {
    Position position = group.position;
    const Extent inner = Product(to, group.begin + 1, group.end);
    const int64_t d = group.begin;
    if (attributes.strides[d] != 1 && from[d] != to[d])
      position = Multiply(position, Size(attributes.strides[d]));
    position = Add(position, Size(attributes.start_indices[d]) * inner);
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
        group.position = Add(Multiply(group.position, -1), Size(dimensions[d]) - 1);
      }
    }
  }
  return index;
}

}  // namespace cpu
