// Reductions whose rows are not what the kernel runs over: any dimensions.
#include <algorithm>

#include "cpu/emit/iteration_space.h"
#include "cpu/emit/reducing_kernel.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::Instruction;

class ReduceKernel : public ReducingKernel {
 public:
  using ReducingKernel::ReducingKernel;

 private:
  // Reductions over any dimensions: kept ones outside, reduced ones inside, lanes along whichever
  // is innermost in memory.
  void EmitBody() override {
    std::vector<const Instruction*> reduces;
    for (const Instruction* result : body_.results()) {
      const Instruction* reduce = ReduceOf(result);
      if (std::find(reduces.begin(), reduces.end(), reduce) == reduces.end())
        reduces.push_back(reduce);
    }
    const Dimensions space = reduces[0]->operand(0)->dimensions();
    const auto& reduced = reduces[0]->as<hlo::DimensionsAttributes>().dimensions;
    std::vector<bool> is_reduced(space.size());
    for (int64_t d : reduced) is_reduced[d] = true;
    std::set<int64_t> boundaries = RunBoundaries(space, WithoutTuples(reduces), sizes_);
    int previous = -1;
    for (size_t d = 0; d < space.size(); ++d) {
      if (space[d] == 1) continue;
      if (previous >= 0 && is_reduced[d] != is_reduced[previous]) boundaries.insert(d);
      previous = static_cast<int>(d);
    }
    std::vector<Run> runs = MakeRuns(space, boundaries);
    std::vector<Run> kept, inner;
    std::vector<bool> run_reduced;
    for (const Run& run : runs) {
      bool any = false;
      for (int64_t d = run.begin; d < run.end; ++d) any |= is_reduced[d] && space[d] != 1;
      run_reduced.push_back(any);
      (any ? inner : kept).push_back(run);
    }
    const Extent reduced_count = Product(inner);
    const bool lanes_reduced =
        kept.empty() || (!inner.empty() && inner.back().begin > kept.back().begin);
    if (lanes_reduced) {
      if (inner.empty()) inner.push_back({0, 0, 1});  // of a scalar
      SetWork({Product(kept), element_cost_, reduced_count, 2});
      emitter_.Loop(Begin(), End(), 1, {}, [&](llvm::Value* row, const Accumulators&) {
        Index row_index = Unflatten(row, emitter_.level(), kept);
        reorder_ = true;
        ReduceRow(reduces, row_index, inner);
        reorder_ = false;
        StoreReduced(emitter_.ScalarPosition(row, emitter_.level()));
        return Accumulators{};
      });
      return;
    }
    EmitColumns(reduces, kept, inner, reduced_count);
  }

  // Results of reduces, bound, at a position of the kept elements.
  void StoreReduced(const Position& position) {
    for (size_t i = 0; i < body_.results().size(); ++i) {
      const Instruction* result = body_.results()[i];
      Element value = emitter_.Evaluate(result, {}).element;
      emitter_.AtInnermost();
      emitter_.Store(ResultPointer(i), position, value, result->element_type());
    }
  }

  static constexpr int kMostVectors = 4;

  // Lanes along kept columns: `group` vectors of them go down the reduced dimensions together.
  void EmitColumns(const std::vector<const Instruction*>& reduces, const std::vector<Run>& kept,
                   const std::vector<Run>& inner, const Extent& reduced_count) {
    const Run columns = kept.back();
    const std::vector<Run> rows(kept.begin(), kept.end() - 1);
    int group = 1;
    while (group < kMostVectors && sizes_.IsLess(group * lanes_, columns.size)) ++group;
    const int64_t block_size = group * lanes_;
    Extent blocks = (columns.size + (block_size - 1)) / block_size;
    if (sizes_.IsEqual(blocks, 1)) blocks = 1;
    SetWork({Product(rows) * blocks, element_cost_, reduced_count * block_size, 2});
    emitter_.Loop(Begin(), End(), 1, {}, [&](llvm::Value* unit, const Accumulators&) {
      Position flat = emitter_.ScalarPosition(unit, emitter_.level());
      Position block =
          blocks.Is(1) ? emitter_.ConstantPosition(0) : emitter_.Remainder(flat, blocks);
      Position row = emitter_.Divide(flat, blocks);
      Index row_index = Unflatten(row.base, row.level, rows);
      Position first = emitter_.Multiply(block, group * lanes_);
      // Vectors that may reach beyond the last column are masked: all of the last block's.
      const bool ragged = columns.size.divisor % block_size != 0;
      ColumnBlock(reduces, row_index, columns, inner, row, first, group, ragged);
      return Accumulators{};
    });
  }

  void ColumnBlock(const std::vector<const Instruction*>& reduces, const Index& row_index,
                   const Run& columns, const std::vector<Run>& inner, const Position& row,
                   const Position& first, int group, bool ragged) {
    std::vector<ReductionPlan> plans;
    for (const Instruction* reduce : reduces) plans.push_back(PlanReduction(reduce));
    emitter_.AtInnermost();
    std::vector<Position> positions;
    std::vector<llvm::Value*> masks;
    const int mask_level = emitter_.level();
    for (int g = 0; g < group; ++g) {
      const Position lane = emitter_.LanesFrom(emitter_.Add(first, g * lanes_));
      positions.push_back(lane);
      llvm::Value* mask = nullptr;
      if (ragged) {
        mask = emitter_.InRange(lane, columns.size).value;
      }
      masks.push_back(mask);
    }
    const NestBody add = [&](const Index& index, const Accumulators& current) {
      Accumulators next;
      size_t position = 0;
      for (int g = 0; g < group; ++g) {
        Index full = index;
        full.push_back({columns.begin, columns.end, positions[g]});
        SortGroups(full);
        emitter_.set_mask({masks[g], mask_level});
        for (const ReductionPlan& plan : plans) {
          auto mine = Take(plan.types, current, position);
          Accumulate(plan, full, mine);
          Flatten(mine, next);
        }
        emitter_.set_mask({});
      }
      return next;
    };
    Accumulators sums = Reduced(plans, group, [&](const Accumulators& initial) {
      return ScalarNest(inner, 0, row_index, initial, add);
    });
    size_t position = 0;
    for (int g = 0; g < group; ++g) {
      for (const ReductionPlan& plan : plans) {
        BindReduce(plan, Finish(plan, Take(plan.types, sums, position)));
      }
      emitter_.set_mask({masks[g], mask_level});
      StoreReduced(emitter_.Add(emitter_.Multiply(row, columns.size), positions[g]));
      emitter_.set_mask({});
    }
  }
};

}  // namespace

KernelInfo EmitReduceKernel(llvm::Module& module, const std::string& name,
                            const Instruction& composite, KernelSizes& sizes) {
  return ReduceKernel(module, name, composite, sizes).Emit();
}

}  // namespace cpu
