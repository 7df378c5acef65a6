// Evaluates the instructions of a fused computation at an index, as LLVM IR.
//
// A kernel's innermost loop advances by `lanes` elements; a value inside it is a vector of lanes,
// or a scalar where all lanes agree. Where an element lies in an array is an Index: for each run of
// adjacent dimensions one Position. Rearrangements (broadcast, transpose, slice, reshape, …) only
// transform the index, and positions stay affine in the lane wherever they can, so that most
// accesses become plain vector loads. A value is emitted in the outermost loop that determines it.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "cpu/emit/elementwise_emitter.h"
#include "cpu/emit/extent.h"
#include "hlo/module.h"

namespace cpu {

// Where the lanes stand along a run of dimensions: base + lane * stride, or any vector.
struct Position {
  llvm::Value* base = nullptr;  // i64
  int64_t stride = 0;
  llvm::Value* vector = nullptr;  // of lanes; then base and stride mean nothing
  int level = 0;                  // of the loop that determines it
  int64_t multiple = 1;           // base is a multiple of this; 0: base is 0
  // All lanes that count lie in [low, high], where that is known.
  struct Bounds {
    int64_t low, high;
  };
  std::optional<Bounds> bounds = std::nullopt;
  bool uniform() const { return !vector && stride == 0; }
};

struct IndexGroup {
  int64_t begin, end;  // dimensions
  Position position;   // row-major within them
};
// Covers all dimensions in order.
using Index = std::vector<IndexGroup>;

class BodyEmitter {
 public:
  // `function` has the signature void(ptr buffers, i64 begin, i64 end), an entry block without a
  // terminator, and buffers for the parameters of `body`, then for its results, then the slots of
  // `sizes`, if it has any.
  BodyEmitter(llvm::Function* function, const hlo::Computation& body, int lanes, bool wide_index,
              KernelSizes& sizes);

  int lanes() const { return lanes_; }
  llvm::IRBuilder<>& builder() { return b_; }
  ElementwiseEmitter& elementwise() { return elementwise_; }

  // --- Loops. Everything emitted between Push and Pop may depend on the loop's variable.
  using Accumulators = std::vector<llvm::Value*>;
  // for (i = begin; i < end; i += step) accumulators = body(i, accumulators)
  Accumulators Loop(llvm::Value* begin, llvm::Value* end, int64_t step, Accumulators initial,
                    const std::function<Accumulators(llvm::Value*, const Accumulators&)>& body);
  void If(llvm::Value* condition, const std::function<void()>& then);
  // Like If, with values that differ on the two ways.
  Accumulators IfElse(llvm::Value* condition, const std::function<Accumulators()>& then,
                      const Accumulators& otherwise);
  int level() const { return static_cast<int>(scopes_.size()) - 1; }
  // Moves the builder to where code of that level goes.
  void At(int level);
  void AtInnermost() { At(level()); }

  // --- Sizes.
  Extent Size(int64_t size) { return sizes_.Size(size); }
  Extent Product(const hlo::Dimensions& dimensions, int64_t begin, int64_t end) {
    return sizes_.Product(dimensions, begin, end);
  }
  bool IsLess(const Extent& left, const Extent& right) { return sizes_.IsLess(left, right); }
  bool IsEqual(const Extent& left, const Extent& right) { return sizes_.IsEqual(left, right); }
  // As an i64 of level 0. Moves the builder.
  llvm::Value* Number(const Extent& number);

  // --- Positions.
  Position ConstantPosition(const Extent& value);
  Position ScalarPosition(llvm::Value* value, int level, int64_t multiple = 1);
  // base + lane for lanes 0 … lanes-1.
  Position LanePosition(llvm::Value* base, int level, int64_t multiple);
  // The same of a scalar position.
  Position LanesFrom(Position base) const;
  Position Add(const Position& a, const Position& b);
  Position Add(const Position& a, const Extent& c) { return Add(a, ConstantPosition(c)); }
  Position Multiply(const Position& a, const Extent& c);
  Position Divide(const Position& a, const Extent& c);
  Position Remainder(const Position& a, const Extent& c);
  // As a value: scalar i64 if uniform, else a vector of the index type.
  llvm::Value* ToValue(const Position& position, int* level);
  // An integer value, clamped to [0, limit].
  Position FromElement(const Element& element, hlo::ElementType type, int level,
                       const Extent& limit);

  Index SplitAt(const Index& index, const hlo::Dimensions& dimensions, int64_t boundary);
  Position Coordinate(const Index& index, const hlo::Dimensions& dimensions, int64_t dimension);
  Position Linearize(const Index& index, const hlo::Dimensions& dimensions);
  // An index of an array whose dimension i is dimension source[i] of `index` (-1: position 0).
  Index Select(const Index& index, const hlo::Dimensions& dimensions,
               const hlo::Dimensions& target_dimensions, const std::vector<int64_t>& source);

  // --- Values.
  struct Value {
    Element element;
    int level = 0;
  };
  // Which lanes count: null for all. A scalar i1 or a vector.
  struct Mask {
    llvm::Value* value = nullptr;
    int level = 0;
    llvm::Value* shared = nullptr;  // a scalar: no lane counts where it is false; null if unknown
  };
  void set_mask(Mask mask) { mask_ = mask; }
  const Mask& mask() const { return mask_; }

  Value Evaluate(const hlo::Instruction* instruction, const Index& index);
  // What `instruction` is from here to the end of the current scope, whatever the index.
  void Bind(const hlo::Instruction* instruction, std::vector<Element> results);
  // The results of a computation over scalars, lane by lane.
  std::vector<Element> Apply(const hlo::Computation& scalar_computation,
                             std::vector<Element> arguments);
  // Splats scalars if any is a vector, or if `vector`.
  void Widen(std::vector<Element>& elements, bool vector = false);
  Element Splat(const Element& element);

  llvm::Value* BufferPointer(int64_t number);
  Value Load(llvm::Value* pointer, const Position& linear, hlo::ElementType type);
  // Obeys the mask.
  void Store(llvm::Value* pointer, const Position& linear, const Element& element,
             hlo::ElementType type);
  // a and b, either may be absent.
  Mask AndMask(const Mask& a, const Mask& b);
  // The first `count` lanes, at the innermost level.
  llvm::Value* FirstLanes(const Extent& count);
  llvm::Value* FirstLanes(llvm::Value* count);
  // 0 <= position < limit. Absent where the position's bounds say that all lanes are, IsNever where
  // they say that none is.
  Mask InRange(const Position& position, const Extent& limit);
  static bool IsNever(const Mask& mask);

  // `before` may give a value instead of its evaluation, and then returns true; `after` sees each
  // value that was evaluated, and may replace it.
  using Observer = std::function<bool(const hlo::Instruction*, const Index&, Value*)>;
  Observer before, after;
  // Sums of 16-bit floats are carried in f32.
  void set_round(bool round);

 private:
  // Keys of Cached that are not binary operations.
  enum : int { kSplatKey = 1000, kAddLanesKey, kAddressKey, kBufferKey, kClampKey, kSlotKey };

  struct Scope {
    llvm::BasicBlock* block;
    std::map<std::vector<const void*>, Value> values;
    std::map<std::tuple<int, const void*, const void*>, llvm::Value*> arithmetic;
    std::map<const hlo::Instruction*, std::vector<Element>> bound;
  };

  Value EvaluateUncached(const hlo::Instruction* instruction, const Index& index);
  Value EvaluateElementwise(const hlo::Instruction* instruction, const Index& index);
  // Ways of which lanes take different ones: body_emitter_ways.cc. An arm of a select that costs
  // something is passed over where no lane takes it.
  struct Arm {
    bool is_costly = false;
    std::vector<const hlo::Instruction*> reads;  // of what is not of this arm alone
  };
  using Arms = std::array<Arm, 2>;
  bool MayHaveCostlyArms();
  Arm ArmOf(const hlo::Instruction* select, size_t operand) const;
  // None if it has no such arm here.
  std::optional<Value> EvaluateArms(const hlo::Instruction* select, const Index& index);
  Element EvaluateArm(const hlo::Instruction* arm, llvm::Value* taken, const Index& index);
  Value EvaluateBeside(const hlo::Instruction* operand, const Index& index) {
    return Evaluate(operand, operand->shape().rank() == 0 ? Index{} : index);
  }
  // A loop of scalars, which ends when it has ended for all lanes that count.
  std::vector<Element> ApplyLoop(const hlo::Instruction& loop, std::vector<Element> state);
  // Whether it holds for one of the lanes that count.
  llvm::Value* IsAny(llvm::Value* condition);
  Value EvaluatePad(const hlo::Instruction* instruction, const Index& index);
  Value EvaluateConcatenate(const hlo::Instruction* instruction, const Index& index);
  Value EvaluateGather(const hlo::Instruction* instruction, const Index& index);
  Position StartAt(const hlo::Instruction* starts, const Index& index, int64_t size,
                   int64_t slice_size);
  Value EvaluateDynamicSlice(const hlo::Instruction* instruction, const Index& index);
  Value EvaluateDynamicUpdateSlice(const hlo::Instruction* instruction, const Index& index);
  // The `result`-th output of a reduce_window.
  Value EvaluateReduceWindow(const hlo::Instruction* instruction, int64_t result,
                             const Index& index);
  // Where a reduce_window looks: body_emitter_windows.cc.
  struct Windows;
  // The operands' index at one position of the windows.
  Index IndexAt(const Windows& windows, const std::vector<Position>& offsets, Mask* inside);
  // `sums`, combined with the elements there.
  std::vector<Element> CombineAt(const Windows& windows, const std::vector<Position>& offsets,
                                 const std::vector<Element>& sums);
  // The element at `position`, less the padding `low`, of a dimension of `size` elements of which
  // each has step - 1 gaps behind it. What lies in a gap, or outside, is not `inside`.
  Position BetweenGaps(const Position& position, const Extent& size, int64_t low, int64_t step,
                       Mask* inside);
  Value EvaluateConstant(const hlo::Literal& literal);
  Value EvaluateIota(const hlo::Instruction* instruction, const Index& index);
  // What a gather's index is, where it need not be read: body_emitter_affine.cc. Its bounds are
  // known.
  std::optional<Position> PlainNumber(const hlo::Instruction* x, const Index& index);
  std::optional<Position> PlainNumberOfAnyType(const hlo::Instruction* x, const Index& index);
  std::optional<Position> PlainCoordinate(const Index& index, const hlo::Dimensions& dimensions,
                                          int64_t dimension);
  std::optional<Position> PlainArithmetic(hlo::Opcode opcode, const std::optional<Position>& a,
                                          const std::optional<Position>& b);
  std::optional<Position> PlainPart(const hlo::Instruction* concatenate, const Index& index);
  std::optional<bool> PlainCondition(const hlo::Instruction* x, const Index& index);

  // Of the operand, if the instruction only moves elements of one.
  std::optional<Index> OperandIndex(const hlo::Instruction* instruction, const Index& index);
  Index ReshapeIndex(const hlo::Instruction* reshape, const Index& index);
  Index SliceIndex(const hlo::Instruction* slice, Index index);
  Index ReverseIndex(const hlo::Instruction* reverse, Index index);
  Value SelectValue(const Mask& condition, Value on_true, Value on_false, hlo::ElementType type);

  llvm::Value* Cached(int operation, llvm::Value* a, llvm::Value* b, int level,
                      const std::function<llvm::Value*()>& make);
  llvm::Value* Arithmetic(llvm::Instruction::BinaryOps operation, llvm::Value* a, llvm::Value* b,
                          int level);
  llvm::Value* SplatIndex(llvm::Value* scalar, int level);
  llvm::Value* LaneVector();
  // As a scalar or vector of positions like another. Moves the builder.
  llvm::Value* NumberLike(const Extent& number, llvm::Value* like);
  llvm::Value* VectorOf(const Position& position);
  llvm::Type* IndexElementType();
  llvm::Value* WhereCounted(llvm::Value* offset);
  llvm::Value* LoadPart(llvm::Value* pointer, const Position& linear, llvm::Type* type, int level);
  llvm::Value* VectorMask();
  void StorePairs(llvm::Value* pointer, const Position& linear, const Element& element,
                  llvm::Type* part);

  llvm::Function* function_;
  const hlo::Computation& body_;
  int lanes_;
  bool wide_index_;
  KernelSizes& sizes_;
  llvm::IRBuilder<> b_;
  ElementwiseEmitter elementwise_;
  std::vector<Scope> scopes_;
  Mask mask_;
  std::optional<int> body_cost_;                  // once it was asked for
  std::map<const hlo::Instruction*, Arms> arms_;  // of selects
  int arm_depth_ = 0, arm_level_ = 0;             // of the arm that is being evaluated
};

}  // namespace cpu
