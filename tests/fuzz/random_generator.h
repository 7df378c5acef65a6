// Builds one computation of a random program from a pool of values that its operations grow.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "byte_source.h"
#include "hlo/builder.h"

namespace fuzz {

using hlo::Builder;
using hlo::Computation;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;
using Values = std::vector<Value>;

inline constexpr int64_t kMostElements = 4096;
inline constexpr int kMostDepth = 2;  // of regions within regions

// The first nine are floating point.
inline constexpr ElementType kTypes[] = {
    ElementType::kF32,  ElementType::kF32,  ElementType::kF32, ElementType::kF32,
    ElementType::kF32,  ElementType::kF64,  ElementType::kF16, ElementType::kBF16,
    ElementType::kBF16, ElementType::kS8,   ElementType::kS16, ElementType::kS32,
    ElementType::kS64,  ElementType::kU8,   ElementType::kU16, ElementType::kU32,
    ElementType::kU64,  ElementType::kPred, ElementType::kC64, ElementType::kC128};
inline constexpr int64_t kSizes[] = {2, 3, 4, 5, 1, 8, 7, 6, 2, 3, 1, 9, 16, 0, 17, 33, 64, 67};

inline int64_t Count(const Dimensions& dimensions) {
  return std::accumulate(dimensions.begin(), dimensions.end(), int64_t{1}, std::multiplies<>());
}

class Generator {
 public:
  Generator(ByteSource& bytes, Builder& builder, Values pool, int depth)
      : bytes_(bytes), b_(builder), pool_(std::move(pool)), depth_(depth) {}

  // Adds operations while there are bytes that choose them.
  void Grow(int64_t steps);
  // Adds element-wise ones alone.
  void GrowElementwise(int64_t steps);
  Values& pool() { return pool_; }
  // The newest values are the likeliest, so that chains grow.
  Value Any() { return pool_[pool_.size() - 1 - Recent(pool_.size())]; }
  // A value of that shape, made from what there is where that is possible.
  Value Like(const Shape& shape);

 private:
  size_t Recent(size_t count);
  Value Find(const std::function<bool(Value)>& fits);
  // By conversion, reshape or broadcast of something; null if nothing fits.
  Value Fit(const Shape& shape);
  // Whether `from` are some of the dimensions of `to`, in order, or of size one.
  static bool Embed(const Dimensions& from, const Dimensions& to, Dimensions* map = nullptr);
  Value To(Value x, ElementType type);
  ElementType AnyType() { return kTypes[bytes_.Below(std::size(kTypes))]; }
  ElementType AnyFloat() { return kTypes[bytes_.Below(9)]; }
  Dimensions AnyDimensions(int64_t most = kMostElements);
  Value Constant(const Shape& shape);
  void Push(Value value);
  using Method = void (Generator::*)();
  // What is not defined for the type or shape adds nothing.
  void Try(Method step);
  void Step();

  // random_elementwise.cc
  void Source();
  void Unary();
  void Binary();
  void Choose();
  Value ScalarOrLike(Value x);
  void Convert();
  void BitcastConvert();

  // random_movement.cc
  void Broadcast();
  void Reshape();
  Dimensions Permutation(int64_t rank);
  Dimensions SomeDimensions(int64_t rank);
  void Transpose();
  void Reverse();
  void Slice();
  void Pad();
  void Concatenate();
  Values Starts(int64_t rank);
  Dimensions Sizes(const Dimensions& dimensions);
  void DynamicSlice();
  void DynamicUpdateSlice();
  // Positions along some dimensions of a value, one row of numbers for each.
  Value Indices(int64_t count, int64_t width);
  void Gather();
  Opcode Combiner(ElementType type);
  void Scatter();

  // random_reduction.cc
  void Reduce();
  // By what depends on the order of the elements: differences, and choices among equal ones and
  // NaN.
  void ReduceInOrder();
  // The largest values and where they stand, as argmax has it: the first of equal ones.
  void ArgumentOfMaximum();
  // Windows of a few elements over the trailing dimensions.
  hlo::Window SmallWindow(Value x, bool dilated);
  void ReduceWindow();
  // Cumulative sums, maxima, ….
  void Scan();
  void SelectAndScatter();
  void Sort();
  Value Along(Value reduced, Value x, int64_t dimension);
  void Softmax();
  void Normalize();
  void BatchNorm();

  // random_contraction.cc
  // x times something that fits, over some of its dimensions.
  Value Product(Value x);
  void Dot();
  // The gradient of a weight that was used twice.
  void SumOfDots();
  void Convolution();
  // A product with a bias, an activation and a residual.
  void Epilogue();
  void Random();
  void Fft();
  // Well-conditioned square matrices, so that the results say something.
  void LinearAlgebra();

  // random_control_flow.cc: some values of the pool are passed.
  Values Captured();
  static std::vector<Shape> ShapesOf(const Values& values);
  // A computation of `parameters` whose results have the shapes `results`.
  Computation* Body(const char* name, const std::vector<Shape>& parameters,
                    const std::vector<Shape>& results);
  void If();
  void Case();
  // A few iterations, which a counter ends.
  void While();
  // Each element of some arrays goes on for turns of its own, as special functions' series do.
  void ElementLoop();
  // Rows that a loop reads, works on and writes into an array, one after the other, as a scan does.
  void LoopOverRows();
  void Call();
  void Map();
  void Collective();
  void Barrier();

  ByteSource& bytes_;
  Builder& b_;
  Values pool_;
  const int depth_;
};

}  // namespace fuzz
