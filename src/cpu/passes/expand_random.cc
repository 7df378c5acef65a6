#include "cpu/passes/engine_passes.h"

#include <algorithm>

#include "hlo/builder.h"
#include "hlo/size_arithmetic.h"
#include "passes/for_each_computation.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;
using Value = Instruction*;

constexpr ElementType kU32 = ElementType::kU32;
constexpr ElementType kU64 = ElementType::kU64;

class Expander {
 public:
  explicit Expander(hlo::Computation& computation) : b_(&computation) {}

  void Expand(Instruction* instruction) {
    b_.set_metadata(instruction->shared_metadata());
    Value state = instruction->operand(0);
    const Shape& shape = instruction->shape().tuple_shapes()[1];
    const bool threefry =
        instruction->as<hlo::RngBitGeneratorAttributes>().algorithm == hlo::RngAlgorithm::kThreeFry;
    auto [new_state, bits] = threefry ? ThreeFry(state, shape) : Philox(state, shape);
    std::vector<Instruction*> users = instruction->users();
    for (Instruction* user : users)
      user->ReplaceAllUsesWith(user->tuple_index() == 0 ? new_state : bits);
  }

 private:
  using Result = std::pair<Value, Value>;

  Value U32(const Dimensions& dimensions, int64_t value) {
    return b_.Full(Shape(kU32, dimensions), value);
  }
  Value Word(Value state, int64_t i) { return b_.Reshape(b_.SliceInDim(state, 0, i, i + 1), {}); }
  Value Low(Value x) { return b_.Convert(x, kU32); }
  Value High(Value x) {
    return b_.Convert(b_.Binary(Opcode::kShiftRightLogical, x, b_.Full(x->shape(), int64_t{32})),
                      kU32);
  }
  Value Spread(Value scalar, const Dimensions& dimensions) {
    return b_.BroadcastInDim(scalar, dimensions, {});
  }
  Value RotateLeft(Value x, int64_t bits) {
    return b_.Or(b_.Binary(Opcode::kShiftLeft, x, U32(x->dimensions(), bits)),
                 b_.Binary(Opcode::kShiftRightLogical, x, U32(x->dimensions(), 32 - bits)));
  }
  Value Number(const Dimensions& dimensions) {
    return b_.Reshape(b_.Iota(Shape(kU64, {hlo::Product(dimensions)}), 0), dimensions);
  }
  Value Join(Value low, Value high) {
    Value shifted = b_.Binary(Opcode::kShiftLeft, b_.Convert(high, kU64),
                              b_.Full(Shape(kU64, high->dimensions()), int64_t{32}));
    return b_.Or(b_.Convert(low, kU64), shifted);
  }
  static ElementType UnsignedOf(ElementType type) {
    switch (hlo::ByteWidth(type)) {
      case 1:
        return ElementType::kU8;
      case 2:
        return ElementType::kU16;
      case 4:
        return kU32;
      default:
        return kU64;
    }
  }
  Value AsType(Value bits, ElementType type) {
    Value narrow = b_.Convert(bits, UnsignedOf(type));
    return narrow->element_type() == type ? narrow : b_.BitcastConvert(narrow, type);
  }

  // The two words of block number `counter` (u64, any dimensions).
  std::pair<Value, Value> ThreeFryBlock(Value key, Value counter) {
    const Dimensions& dims = counter->dimensions();
    Value k0 = Spread(Low(key), dims), k1 = Spread(High(key), dims);
    Value k2 = b_.Xor(b_.Xor(k0, k1), U32(dims, 0x1BD11BDA));
    Value keys[3] = {k0, k1, k2};
    static constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    Value x0 = b_.Add(Low(counter), k0), x1 = b_.Add(High(counter), k1);
    for (int round = 0; round < 5; ++round) {
      for (int rotation : kRotations[round % 2]) {
        x0 = b_.Add(x0, x1);
        x1 = b_.Xor(RotateLeft(x1, rotation), x0);
      }
      x0 = b_.Add(x0, keys[(round + 1) % 3]);
      x1 = b_.Add(b_.Add(x1, keys[(round + 2) % 3]), U32(dims, round + 1));
    }
    return {x0, x1};
  }

  Value NewThreeFryState(Value state, int64_t blocks) {
    Value counter = b_.Add(Word(state, 1), b_.ConstantScalar(kU64, blocks));
    return b_.Concatenate({b_.SliceInDim(state, 0, 0, 1), b_.Reshape(counter, {1})}, 0);
  }

  Result ThreeFry(Value state, const Shape& shape) {
    Value key = Word(state, 0);
    Value first = Word(state, 1);
    if (hlo::ByteWidth(shape.element_type()) == 8) {
      Value counter = b_.Add(Spread(first, shape.dimensions()), Number(shape.dimensions()));
      auto [x0, x1] = ThreeFryBlock(key, counter);
      return {NewThreeFryState(state, shape.num_elements()),
              AsType(Join(x0, x1), shape.element_type())};
    }
    Dimensions dims = shape.dimensions();
    if (dims.empty()) dims = {2};
    // The words of a block are neighbours along the first even dimension, else the largest.
    int64_t split = -1;
    for (size_t d = 0; d < dims.size() && split < 0; ++d) {
      if (dims[d] % 2 == 0) split = static_cast<int64_t>(d);
    }
    if (split < 0) split = std::max_element(dims.begin(), dims.end()) - dims.begin();
    Dimensions grid = dims;
    grid[split] = (dims[split] + 1) / 2;
    int64_t blocks = 1;
    for (int64_t d : grid) blocks *= d;
    auto [x0, x1] = ThreeFryBlock(key, b_.Add(Spread(first, grid), Number(grid)));
    Dimensions single = grid, joined = grid;
    single.insert(single.begin() + split + 1, 1);
    joined[split] *= 2;
    Value bits = b_.Concatenate({b_.Reshape(x0, single), b_.Reshape(x1, single)}, split + 1);
    bits = b_.Reshape(bits, joined);
    if (joined != dims) bits = b_.SliceInDim(bits, split, 0, dims[split]);
    if (shape.rank() == 0) bits = b_.Reshape(b_.SliceInDim(bits, 0, 0, 1), {});
    return {NewThreeFryState(state, blocks), AsType(bits, shape.element_type())};
  }

  // 128-bit counters as (low, high) pairs of u64.
  Result Philox(Value state, const Shape& shape) {
    const int64_t per_block = hlo::ByteWidth(shape.element_type()) == 8 ? 2 : 4;
    const int64_t count = shape.num_elements();
    const int64_t blocks = hlo::CeilDivide(count, per_block);
    const bool three = state->dimensions()[0] == 3;
    Value key = Word(state, 0);
    Value low = Word(state, 1);
    Value high = three ? Word(state, 2) : key;
    const Dimensions dims = {blocks};
    Value low_start = Spread(low, dims);
    Value counter_low = b_.Add(low_start, Number(dims));
    Value carry = b_.Convert(b_.Lt(counter_low, low_start), kU64);
    Value counter_high = b_.Add(Spread(high, dims), carry);
    Value c[4] = {Low(counter_low), High(counter_low), Low(counter_high), High(counter_high)};
    Value k0 = Spread(Low(key), dims), k1 = Spread(High(key), dims);
    for (int round = 0; round < 10; ++round) {
      auto multiply = [&](Value x, int64_t factor) {
        return b_.Multiply(b_.Convert(x, kU64), b_.Full(Shape(kU64, dims), factor));
      };
      Value p0 = multiply(c[0], 0xD2511F53), p1 = multiply(c[2], 0xCD9E8D57);
      Value next[4] = {b_.Xor(b_.Xor(High(p1), c[1]), k0), Low(p1),
                       b_.Xor(b_.Xor(High(p0), c[3]), k1), Low(p0)};
      std::copy(next, next + 4, c);
      k0 = b_.Add(k0, U32(dims, 0x9E3779B9));
      k1 = b_.Add(k1, U32(dims, 0xBB67AE85));
    }
    std::vector<Value> words;
    if (per_block == 2) {
      words = {b_.Reshape(Join(c[0], c[1]), {blocks, 1}),
               b_.Reshape(Join(c[2], c[3]), {blocks, 1})};
    } else {
      for (Value word : c) words.push_back(b_.Reshape(word, {blocks, 1}));
    }
    Value bits = b_.Reshape(b_.Concatenate(words, 1), {blocks * per_block});
    if (blocks * per_block != count) bits = b_.SliceInDim(bits, 0, 0, count);
    bits = AsType(b_.Reshape(bits, shape.dimensions()), shape.element_type());
    Value new_low = b_.Add(low, b_.ConstantScalar(kU64, blocks));
    Value overflow = b_.Convert(b_.Lt(new_low, low), kU64);
    std::vector<Value> parts = {b_.SliceInDim(state, 0, 0, 1), b_.Reshape(new_low, {1})};
    if (three) parts.push_back(b_.Reshape(b_.Add(high, overflow), {1}));
    return {b_.Concatenate(parts, 0), bits};
  }

  Builder b_;
};

bool ExpandRandomNumbers(hlo::Computation& computation) {
  const auto is_found = [](const Instruction& i) { return i.opcode() == Opcode::kRngBitGenerator; };
  return passes::RewriteEach(computation, is_found, [&](Instruction* instruction) {
    Expander(computation).Expand(instruction);
    return true;
  });
}

}  // namespace

bool ExpandRandom(hlo::Module& module) {
  return passes::ForEachComputation(module, ExpandRandomNumbers);
}

}  // namespace cpu
