// The reference evaluator for a computation that is run again and again: what does not depend on
// the arguments is computed once, and element-wise instructions run in one piece of memory, without
// a literal for each. The values are the evaluator's, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "hlo/evaluation.h"
#include "hlo/module.h"

namespace hlo {

class PreparedEvaluation {
 public:
  // The computation outlives it. Throws what evaluating its constants throws.
  explicit PreparedEvaluation(const Computation& computation);
  PreparedEvaluation(const PreparedEvaluation&) = delete;

  // As EvaluateComputation; the arguments have the parameters' shapes. By any number of threads.
  std::vector<Literal> Run(std::span<const Literal> arguments) const;

 private:
  // Elements, row-major; or one of them that all others equal.
  struct Leaf {
    size_t place = 0;  // among the addresses of a run
    bool is_number = false;
    Shape shape;
  };
  using Leaves = std::vector<Leaf>;
  // A loop over elements that lie together, or over one again and again (a step of 0).
  using Loop = void (*)(const std::byte* x, int64_t x_step, const std::byte* y, int64_t y_step,
                        std::byte* result, int64_t count);
  struct Step {
    const Instruction* instruction;
    evaluation::ScalarKernel kernel;  // null: the evaluator runs the instruction
    Loop loop;                        // instead of the kernel, if not null
    Leaves operands, results;
  };
  // One run's memory.
  struct Values {
    std::vector<const std::byte*> addresses;
    std::vector<std::byte> computed;
    std::vector<std::vector<Literal>> literals;
  };

  static Loop LoopOf(const Instruction& instruction);
  static Literal LiteralOf(const Leaf& leaf, const std::byte* bytes);
  static void RunElements(const Step& step, Values& values);
  static void RunWhole(const Step& step, Values& values);

  Leaves Add(const Instruction& instruction);
  Leaves OperandsOf(const Instruction& instruction) const;
  Leaves NewLeaves(const Shape& shape);
  static Leaves Alias(const Instruction& instruction, const Leaves& operands);
  std::optional<Literal> Fold(const Instruction& instruction, const Leaves& operands) const;

  struct Constant {
    size_t place;
    Literal literal;
  };
  struct Computed {
    size_t place, offset;
  };

  size_t place_count_ = 0, computed_bytes_ = 0;
  std::vector<Constant> constants_;
  std::vector<Computed> computed_;
  std::vector<size_t> parameters_;  // the places of the arguments
  std::vector<Step> steps_;
  Leaves results_;
  std::unordered_map<const Instruction*, Leaves> leaves_;  // while it is prepared
};

}  // namespace hlo
