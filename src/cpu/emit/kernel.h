// What the kinds of kernels share: the function, and nests of loops over its iteration space.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cpu/emit/body_emitter.h"
#include "cpu/emit/kernel_emitter.h"

namespace cpu {

// Dimensions [begin, end) joined into one of `size` elements.
struct Run {
  int64_t begin, end;
  Extent size;
};

using Accumulators = BodyEmitter::Accumulators;
using NestBody = std::function<Accumulators(const Index&, const Accumulators&)>;

// The reduce behind a result: itself, or what a get_tuple_element picks from; null if it is none.
const hlo::Instruction* ReduceOf(const hlo::Instruction* instruction);
// A tuple-shaped reduce stands for its inputs.
std::vector<const hlo::Instruction*> WithoutTuples(
    const std::vector<const hlo::Instruction*>& roots);
// A reduction whose body is no plain sum, product, maximum, … takes its elements in their order:
// which of several NaNs JAX's argmax picks depends on it, and so does a difference.
bool ReducesInOrder(const hlo::Instruction& instruction);
// Whether the elements that a reduction sums lie next to each other.
bool ReducesRows(const hlo::Instruction& reduce);
// Groups in the order of their dimensions.
void SortGroups(Index& index);

// Their elements together.
Extent Product(const std::vector<Run>& runs);

class Kernel {
 public:
  Kernel(llvm::Module& module, const std::string& name, const hlo::Instruction& composite,
         KernelSizes& sizes);
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;

  KernelInfo Emit();

 protected:
  // Emits the loops and says what they take.
  virtual void EmitBody() = 0;

  llvm::Value* Begin() { return function_->getArg(1); }
  llvm::Value* End() { return function_->getArg(2); }
  // Moves the builder if it varies.
  llvm::Value* I64(const Extent& value) { return emitter_.Number(value); }
  llvm::Value* ResultPointer(size_t i);
  // By emission that compares numbers that may vary by name only.
  void SetWork(KernelWork work);

  std::vector<Run> MakeRuns(const hlo::Dimensions& space, const std::set<int64_t>& boundaries);
  // Positions of a flattened number in runs.
  Index Unflatten(llvm::Value* flat, int level, const std::vector<Run>& runs);
  // Scalar loops over the runs from the i-th.
  Accumulators ScalarNest(const std::vector<Run>& runs, size_t i, Index index,
                          Accumulators accumulators, const NestBody& body);
  // Lanes over one run: full vectors, `unroll` of them an iteration where that many are left, and a
  // masked rest. With several accumulator sets (unroll), set u belongs to vector u.
  Accumulators LaneLoop(const Run& run, const Index& outer, Accumulators accumulators, int unroll,
                        const NestBody& body);
  void WithMask(llvm::Value* value, int level, const std::function<void()>& body);

  using LoopBody = std::function<Accumulators(llvm::Value*, const Accumulators&)>;
  // A loop of a nest, of `count` turns.
  virtual Accumulators NestLoop(llvm::Value* begin, llvm::Value* end, int64_t step,
                                const Extent& /*count*/, const Accumulators& accumulators,
                                const LoopBody& body) {
    return emitter_.Loop(begin, end, step, accumulators, body);
  }
  // What a turn of a nest's loop does if it has `count` turns of loops inside.
  virtual Accumulators NestTurn(const Extent& /*count*/, const Accumulators& accumulators,
                                const std::function<Accumulators(const Accumulators&)>& turn) {
    return turn(accumulators);
  }

 private:
  llvm::Function* MakeFunction(llvm::Module& module, const std::string& name);
  // As many as fill a register with the widest type that is computed with.
  int ChooseLanes() const;
  bool ChooseWideIndex();
  void RestOfLanes(const Run& run, const Index& outer, const Extent& done,
                   Accumulators& accumulators, const NestBody& body);
  // The same where the number of lanes varies.
  void VaryingRestOfLanes(const Run& run, const Index& outer, const Extent& done,
                          Accumulators& accumulators, const NestBody& body);

 protected:
  const hlo::Instruction& composite_;
  const hlo::Computation& body_;
  KernelSizes& sizes_;
  llvm::Function* function_ = nullptr;
  int lanes_;
  BodyEmitter emitter_;
  llvm::IRBuilder<>& b_;
  const double element_cost_;  // its kind's
  KernelInfo info_;
};

}  // namespace cpu
