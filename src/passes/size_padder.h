// How pad_sizes.h makes the padded program, instruction by instruction.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/builder.h"
#include "passes/pad_sizes.h"
#include "passes/size_classes.h"

namespace passes {

class SizePadder {
 public:
  // The padded program becomes a computation of the module, which stays the caller's, as `padded`
  // does.
  SizePadder(hlo::Module& module, const VaryingParts& parts,
             const std::function<int64_t(int64_t)>& padded);

  // Makes the program. Returns the arguments behind its own. Throws PaddingRefused.
  std::vector<hlo::Literal> Run();

  PaddedBox BoxOf(const hlo::Instruction* value) const;
  hlo::Computation& target() { return target_; }

 private:
  static constexpr hlo::ElementType kSizeType = hlo::ElementType::kS32;

  [[noreturn]] static void Refuse(const hlo::Instruction& instruction, const std::string& why) {
    throw PaddingRefused(instruction, why);
  }

  // Sizes.
  bool Varies(const hlo::Instruction* value, int64_t d) const {
    return classes_.Varies(classes_.Of(value, d));
  }
  bool Varies(const hlo::Instruction* value) const;
  bool IsJoined(const hlo::Instruction* value, int64_t d) const {
    return Varies(value, d) && classes_.Factors(classes_.Of(value, d)).size() > 1;
  }
  int64_t PaddedSize(int c) const;
  int64_t PaddedSize(const hlo::Instruction* value, int64_t d) const;
  hlo::Dimensions PaddedSizes(const hlo::Instruction* value) const;
  hlo::Shape PaddedShape(const hlo::Instruction* value) const;
  void CheckSizes(const hlo::Instruction& instruction) const;
  // What was made has the shape that its users are told.
  void CheckShape(const hlo::Instruction& instruction) const;

  // Arguments.
  hlo::Value Argument(hlo::Literal literal);
  hlo::Value IntegerArgument(int64_t number) {
    return Argument(hlo::Literal::FromInt(kSizeType, number));
  }
  // The true size of a dimension, a scalar.
  hlo::Value Size(const hlo::Instruction* value, int64_t d);
  hlo::Value SizeOfFactor(int factor);
  hlo::Value Number(int64_t number) { return builder_.ConstantScalar(kSizeType, number); }

  // Masks.
  // Which indices of a varying dimension are true ones: pred[padded size].
  hlo::Value MaskOf(int c);
  // `value`, which pads `original`, with `fill` (a scalar) where an index of `dimensions` is not a
  // true one.
  hlo::Value Masked(hlo::Value value, const hlo::Instruction* original,
                    const hlo::Dimensions& dimensions, hlo::Value fill);
  // What masks an operand of a body; a scalar.
  hlo::Value NeutralOf(const hlo::Instruction& instruction, const hlo::Computation& body,
                       hlo::ElementType type);

  // Parts.
  // `value` with dimension d cut, or continued by anything, to `size`.
  hlo::Value Resized(hlo::Value value, int64_t d, int64_t size);
  // Dimension d from `start`, a scalar, `size` elements of it. What starts in it may end behind it.
  hlo::Value From(hlo::Value value, int64_t d, hlo::Value start, int64_t size);
  // Indices, of `limits` (scalars) at most in each entry of their vectors.
  hlo::Value Limited(hlo::Value indices, int64_t vector_dim, const std::vector<hlo::Value>& limits);

  // Instructions.
  hlo::Value Of(const hlo::Instruction* operand) const { return values_.at(operand); }
  std::vector<hlo::Value> OperandsOf(const hlo::Instruction& instruction) const;
  hlo::Value Same(const hlo::Instruction& instruction, const hlo::Shape& shape);
  hlo::Value Same(const hlo::Instruction& instruction, const hlo::Shape& shape,
                  std::vector<hlo::Value> operands,
                  std::optional<hlo::Attributes> attributes = std::nullopt);
  bool IsTouched(const hlo::Instruction& instruction) const;

  hlo::Value Padded(const hlo::Instruction& instruction);
  hlo::Value PadConstant(const hlo::Instruction& constant);
  hlo::Value PadReshape(const hlo::Instruction& reshape);
  hlo::Value PadIota(const hlo::Instruction& iota);
  hlo::Value PadSort(const hlo::Instruction& sort);
  // size_padder_combining.cc
  hlo::Value PadReduce(const hlo::Instruction& reduce);
  hlo::Value PadDot(const hlo::Instruction& dot);
  hlo::Value PadReduceWindow(const hlo::Instruction& instruction);
  // The window of dimension `i`, of which `size` results are wanted.
  void FitWindow(const hlo::Instruction& instruction, hlo::Window& window, size_t i,
                 int64_t true_size, int64_t size, int64_t result) const;
  hlo::Value PadConvolution(const hlo::Instruction& convolution);
  // size_padder_parts.cc
  hlo::Value PadGather(const hlo::Instruction& gather);
  hlo::Value PadScatter(const hlo::Instruction& scatter);
  hlo::Value PadSlice(const hlo::Instruction& slice);
  hlo::Value PadDynamicSlice(const hlo::Instruction& slice);
  // What the update has behind its true sizes is left as it was.
  hlo::Value PadDynamicUpdateSlice(const hlo::Instruction& instruction);
  hlo::Value PadPad(const hlo::Instruction& pad);
  hlo::Value PadConcatenate(const hlo::Instruction& concatenate);
  hlo::Value PadReverse(const hlo::Instruction& reverse);

  hlo::Computation& entry_;
  SizeClasses classes_;
  const std::function<int64_t(int64_t)>& padded_;
  hlo::Computation& target_;
  hlo::Builder builder_;
  std::unordered_map<const hlo::Instruction*, bool> attributes_vary_;
  std::unordered_map<const hlo::Instruction*, hlo::Value> values_;
  std::map<int, hlo::Value> sizes_, masks_;  // by class
  std::vector<hlo::Literal> arguments_;
};

}  // namespace passes
