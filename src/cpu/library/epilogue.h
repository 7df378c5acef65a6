// The elementwise tail of a contraction: bias, residual, activation, scale, applied to each slice
// of the result while it is in the cache.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cpu/thread_pool.h"
#include "hlo/module.h"

namespace cpu {

// True if a composite whose body is `contraction` (dot_general or convolution) followed by
// `epilogue` (operands before users; the last is the only result) binds to a library call. The
// contraction and each intermediate value must be used inside only. Operations understood, on
// values of the result's dimensions and real floating point type: add, subtract, multiply, divide,
// maximum, minimum with a value from outside that is (a) of the full shape, (b) a broadcast_in_dim
// along the minor-most result dimension or, for convolutions, the feature dimension, or (c) a splat
// constant or broadcast scalar; negate, tanh, logistic, convert between real types. The broadcasts,
// reshapes and constants belong to `epilogue` too.
bool CanFuseEpilogue(const hlo::Instruction& contraction,
                     std::span<const hlo::Instruction* const> epilogue);

class Epilogue {
 public:
  // Reads the body of a composite; nullopt if something is not understood or there is no single
  // contraction, of the body's parameters, or of a conversion of one as right operand. Operands of
  // the steps are the body's parameter numbers.
  static std::optional<Epilogue> FromBody(const hlo::Computation& body);
  // For CanFuseEpilogue: operands are not numbered.
  static std::optional<Epilogue> FromInstructions(
      const hlo::Instruction& contraction, std::span<const hlo::Instruction* const> epilogue);

  const hlo::Instruction& contraction() const { return *contraction_; }
  bool empty() const { return steps_.empty(); }
  // Transforms values[0..count), which are the result's elements at row-major positions
  // [position, position + count).
  void Apply(float* values, int64_t position, int64_t count, const void* const* operands) const;
  std::string Description() const;

 private:
  enum class Operand { kNone, kScalar, kChannel, kFull };
  struct Step {
    hlo::Opcode opcode;
    Operand kind = Operand::kNone;
    bool reversed = false;  // operand op value
    float scalar = 0;
    int operand = -1;  // kScalar with an operand: a scalar read at run time
    hlo::ElementType type = hlo::ElementType::kF32;
    int64_t channel_inner = 1, channels = 1;
  };
  // Of a kChannel step: its operand has an element for each channel.
  static void ApplyChannels(const Step& step, float* x, int64_t position, int64_t count,
                            const void* data);

  friend class EpilogueReader;
  const hlo::Instruction* contraction_ = nullptr;
  std::vector<Step> steps_;
};

// Writes a finished contraction: element i of `result_shape`, in row-major order, is read at the
// position that `strides` give in `staged`, goes through the epilogue (may be null) and is
// converted.
void StoreResult(ThreadPool& threads, const Epilogue* epilogue, const hlo::Shape& result_shape,
                 const hlo::Dimensions& strides, const void* staged, hlo::ElementType staged_type,
                 const void* const* operands, void* result);

}  // namespace cpu
