// Kernels that reduce: how a reduction is accumulated, lane by lane and across the lanes.
#pragma once

#include "cpu/emit/kernel.h"
#include "cpu/emit/row_cache.h"

namespace cpu {

struct ReductionPlan {
  const hlo::Instruction* reduce;
  const hlo::Computation* combiner;
  std::vector<hlo::ElementType> types;
  std::vector<Element> initial;  // what accumulators start from
  std::vector<Element> init;     // folded in at the end; empty if `initial` is it
};

class ReducingKernel : public Kernel {
 public:
  using Kernel::Kernel;

 protected:
  ReductionPlan PlanReduction(const hlo::Instruction* reduce);

  // Elements to and from the flat list of values that loops carry.
  static void Flatten(const std::vector<Element>& elements, Accumulators& out);
  static std::vector<Element> Take(const std::vector<hlo::ElementType>& types,
                                   const Accumulators& values, size_t& position);

  std::vector<Element> Combine(const ReductionPlan& plan, std::vector<Element> left,
                               const std::vector<Element>& right);
  // One step: the reduction's inputs at `index`, combined into the accumulators (vectors).
  void Accumulate(const ReductionPlan& plan, const Index& index,
                  std::vector<Element>& accumulators);
  std::vector<Element> AcrossLanes(const ReductionPlan& plan, std::vector<Element> elements);
  // The initial values folded in, and rounded to the type.
  std::vector<Element> Finish(const ReductionPlan& plan, std::vector<Element> elements);
  void BindReduce(const ReductionPlan& plan, const std::vector<Element>& values);

  // Loops over `columns`, lanes along the last; `row_index` is what is outside.
  Accumulators Columns(const std::vector<Run>& columns, const Index& row_index,
                       Accumulators initial, int unroll, const NestBody& body);
  // Reduces the columns of one row and binds the results.
  void ReduceRow(const std::vector<const hlo::Instruction*>& reduces, const Index& row_index,
                 const std::vector<Run>& columns);

  // The accumulators that a reduction starts from, in vectors: `sets` of them, each of all plans'.
  // While `reduce` emits the loops, long sums are made of sums of blocks.
  Accumulators Reduced(const std::vector<ReductionPlan>& plans, int sets,
                       const std::function<Accumulators(const Accumulators&)>& reduce);

  Accumulators NestLoop(llvm::Value* begin, llvm::Value* end, int64_t step, const Extent& count,
                        const Accumulators& accumulators, const LoopBody& body) override;
  Accumulators NestTurn(const Extent& count, const Accumulators& accumulators,
                        const std::function<Accumulators(const Accumulators&)>& turn) override;

  RowCache cache_{emitter_, lanes_};
  bool reorder_ = false;  // the reduced runs lie between kept ones: indices need sorting

 private:
  int Unroll(const Extent& columns);
  // Turns [begin, end) of a loop, in `depth` levels of blocks.
  Accumulators Blocks(llvm::Value* begin, llvm::Value* end, int64_t step, int depth,
                      const Accumulators& accumulators, const LoopBody& body);
  // What `reduce` makes of sums that start anew, and of the other accumulators as they are, added
  // to those that were there.
  Accumulators Apart(const Accumulators& accumulators,
                     const std::function<Accumulators(const Accumulators&)>& reduce);

  const std::vector<ReductionPlan>* plans_ = nullptr;  // of the reductions that are emitted
  Accumulators start_;                                 // of one set of them
};

}  // namespace cpu
