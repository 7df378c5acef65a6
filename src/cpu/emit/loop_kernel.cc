// Element-wise loops, and loops over rows with reductions inside (softmax, norms).
#include "cpu/emit/iteration_space.h"
#include "cpu/emit/reducing_kernel.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::Instruction;
using hlo::Opcode;

int64_t ResultRank(const Instruction* reduce) {
  return reduce->shape().is_tuple() ? reduce->shape().tuple_shapes()[0].rank()
                                    : reduce->shape().rank();
}

class LoopKernel : public ReducingKernel {
 public:
  using ReducingKernel::ReducingKernel;

 private:
  void EmitBody() override {
    std::vector<const Instruction*> reduces;
    for (const auto& instruction : body_.instructions()) {
      if (instruction->opcode() == Opcode::kReduce) reduces.push_back(instruction.get());
    }
    Dimensions space = body_.result()->dimensions();
    int64_t row_rank = -1;
    if (!reduces.empty()) {
      space = reduces[0]->operand(0)->dimensions();
      row_rank = ResultRank(reduces[0]);
    }
    std::vector<const Instruction*> roots(body_.results().begin(), body_.results().end());
    for (const Instruction* reduce : reduces) roots.push_back(reduce);
    std::set<int64_t> boundaries = RunBoundaries(space, WithoutTuples(roots));
    if (row_rank >= 0) boundaries.insert(row_rank);
    std::vector<Run> runs = MakeRuns(space, boundaries);
    if (runs.empty()) runs.push_back({0, 0, 1});
    if (row_rank < 0) {
      // Short innermost runs are vectorized across.
      if (runs.size() > 1 && runs.back().size.value < std::min<int64_t>(lanes_ / 2, 8)) {
        const auto rank = static_cast<int64_t>(space.size());
        runs = {{0, rank, emitter_.Product(space, 0, rank)}};
      }
      if (runs.size() == 1) return EmitFlat(runs[0]);
    }
    std::vector<Run> rows, columns;
    for (const Run& run : runs) {
      const bool row =
          row_rank >= 0 ? run.end <= row_rank && run.begin < row_rank : &run != &runs.back();
      (row ? rows : columns).push_back(run);
    }
    if (columns.empty()) columns.push_back({row_rank, static_cast<int64_t>(space.size()), 1});
    int64_t row_count = 1;
    Extent column_count(1);
    for (const Run& run : rows) row_count *= run.size.value;
    for (const Run& run : columns) column_count = column_count * run.size;
    info_.units = row_count;
    info_.unit_cost = element_cost_ * static_cast<double>(column_count.value) + 2;
    cache_.Plan(body_, reduces, column_count);
    emitter_.Loop(Begin(), End(), 1, {}, [&](llvm::Value* row, const Accumulators&) {
      Index row_index = Unflatten(row, emitter_.level(), rows);
      EmitRow(reduces, row_index, columns, row);
      return Accumulators{};
    });
  }

  void EmitFlat(const Run& run) {
    const Extent full = run.size / lanes_;
    info_.units = hlo::CeilDivide(run.size.value, lanes_);
    info_.unit_cost = element_cost_ * lanes_;
    auto store = [&](const Position& position) { StoreFull({{run.begin, run.end, position}}); };
    llvm::Value* vectors = I64(full);
    emitter_.AtInnermost();
    if (!full.Is(0)) {
      llvm::Value* end = b_.CreateSelect(b_.CreateICmpSLT(End(), vectors), End(), vectors);
      emitter_.Loop(b_.CreateMul(Begin(), I64(lanes_)), b_.CreateMul(end, I64(lanes_)), lanes_, {},
                    [&](llvm::Value* variable, const Accumulators&) {
                      store(emitter_.LanePosition(variable, emitter_.level(), lanes_));
                      return Accumulators{};
                    });
    }
    if (run.size.divisor % lanes_ == 0) return;
    const Extent begin = full * lanes_, rest = run.size - begin;
    emitter_.AtInnermost();
    emitter_.If(b_.CreateICmpSGT(End(), vectors), [&] {
      if (rest.Is(1)) return store(emitter_.ConstantPosition(begin));
      llvm::Value* first = I64(begin);
      WithMask(emitter_.FirstLanes(rest), rest.varies ? emitter_.level() : 0,
               [&] { store(emitter_.LanePosition(first, 0, begin.divisor)); });
    });
  }

  // All results at an index of the whole space.
  void StoreFull(const Index& index) {
    std::vector<Element> values;
    for (const Instruction* result : body_.results()) {
      if (IsRowResult(result)) {
        values.push_back({});
      } else {
        values.push_back(emitter_.Evaluate(result, index).element);
      }
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const Instruction* result = body_.results()[i];
      if (!values[i].real) continue;
      emitter_.Store(ResultPointer(i), emitter_.Linearize(index, result->dimensions()), values[i],
                     result->element_type());
    }
  }

  bool IsRowResult(const Instruction* result) const { return row_results_.contains(result); }

  void EmitRow(const std::vector<const Instruction*>& reduces, const Index& row_index,
               const std::vector<Run>& columns, llvm::Value* row) {
    // A reduce may be computed once those that it depends on are.
    std::vector<std::vector<const Instruction*>> passes;
    std::map<const Instruction*, int> depth;
    for (const auto& instruction : body_.instructions()) {
      int& d = depth[instruction.get()];
      for (const Instruction* operand : instruction->operands()) {
        d = std::max(d, depth[operand] + (operand->opcode() == Opcode::kReduce ? 1 : 0));
      }
      if (instruction->opcode() != Opcode::kReduce) continue;
      if (static_cast<int>(passes.size()) <= d) passes.resize(d + 1);
      passes[d].push_back(instruction.get());
    }
    row_results_.clear();
    for (const Instruction* result : body_.results()) {
      if (!reduces.empty() && result->shape().rank() == ResultRank(reduces[0])) {
        row_results_.insert(result);
      }
    }
    for (const auto& pass : passes) ReduceRow(pass, row_index, columns);
    if (row_results_.size() < body_.results().size()) {
      Columns(columns, row_index, {}, 1, [&](const Index& index, const Accumulators&) {
        StoreFull(index);
        return Accumulators{};
      });
    }
    for (size_t i = 0; i < body_.results().size(); ++i) {
      const Instruction* result = body_.results()[i];
      if (!IsRowResult(result)) continue;
      Element value = emitter_.Evaluate(result, row_index).element;
      emitter_.AtInnermost();
      emitter_.Store(ResultPointer(i), emitter_.ScalarPosition(row, emitter_.level()), value,
                     result->element_type());
    }
  }

  // Of the rank of a reduce: one element for each row.
  std::set<const Instruction*> row_results_;
};

}  // namespace

KernelInfo EmitLoopKernel(llvm::Module& module, const std::string& name,
                          const Instruction& composite, KernelSizes& sizes) {
  return LoopKernel(module, name, composite, sizes).Emit();
}

}  // namespace cpu
