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

  RowCache cache_{emitter_, lanes_};
  bool reorder_ = false;  // the reduced runs lie between kept ones: indices need sorting

 private:
  int Unroll(const Extent& columns);
};

}  // namespace cpu
