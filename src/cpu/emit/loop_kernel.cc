// Element-wise loops, and loops over rows with reductions inside (softmax, norms).
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "cpu/emit/iteration_space.h"
#include "cpu/emit/reducing_kernel.h"

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
    std::set<int64_t> boundaries = RunBoundaries(space, WithoutTuples(roots), sizes_);
    if (row_rank >= 0) boundaries.insert(row_rank);
    std::vector<Run> runs = MakeRuns(space, boundaries);
    if (runs.empty()) runs.push_back({0, 0, 1});
    if (row_rank < 0) {
      FindSeams(space, roots);
      // Short innermost runs are vectorized across.
      if (runs.size() > 1 && sizes_.IsLess(runs.back().size, std::min(lanes_ / 2, 8))) {
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
    const Extent row_count = Product(rows), column_count = Product(columns);
    SetWork({row_count, element_cost_, column_count, 2});
    cache_.Plan(body_, reduces, column_count);
    if (row_rank < 0) return EmitRowParts(rows, columns.back());
    emitter_.Loop(Begin(), End(), 1, {}, [&](llvm::Value* row, const Accumulators&) {
      Index row_index = Unflatten(row, emitter_.level(), rows);
      EmitRow(reduces, row_index, columns, row);
      return Accumulators{};
    });
  }

  // A part of a run in which no seam lies, so that it is plain which operands are read.
  struct Part {
    int64_t begin, end;
  };

  // Each part is code of its own, of which there is not too much. Parts of rows save less.
  void FindSeams(const Dimensions& space, const std::vector<const Instruction*>& roots) {
    const bool has_seams = std::ranges::any_of(body_.instructions(), [](const auto& i) {
      return i->opcode() == Opcode::kConcatenate || i->opcode() == Opcode::kPad;
    });
    if (!has_seams) return;
    seams_ = Seams(space, roots, sizes_);
    const auto code = [&] {
      size_t size = body_.instructions().size();
      for (const auto& [dimension, seams] : seams_) size *= seams.size() + 1;
      return size;
    };
    const auto last = static_cast<int64_t>(space.size()) - 1;
    if (code() > kMostCode) std::erase_if(seams_, [&](const auto& s) { return s.first != last; });
    if (code() > kMostCode) seams_.clear();
  }

  std::vector<Part> PartsOf(const Run& run) const {
    const auto seams = seams_.find(run.begin);
    if (run.end != run.begin + 1 || run.size.varies || seams == seams_.end()) {
      return {{0, run.size.value}};
    }
    std::vector<Part> parts = {{0, 0}};
    for (int64_t seam : seams->second) {
      parts.back().end = seam;
      parts.push_back({seam, 0});
    }
    parts.back().end = run.size.value;
    return parts;
  }

  static Position Within(Position position, const Part& part) {
    position.bounds = {part.begin, part.end - 1};
    return position;
  }

  llvm::Value* Smaller(llvm::Value* a, llvm::Value* b) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
  }
  llvm::Value* Larger(llvm::Value* a, llvm::Value* b) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
  }

  // Rows without reductions.
  void EmitRowParts(const std::vector<Run>& rows, const Run& columns) {
    const auto is_long = [](const Run& run) { return !run.size.Is(1); };
    const auto one = std::ranges::find_if(rows, is_long);
    const bool is_one = std::ranges::count_if(rows, is_long) == 1;
    const std::vector<Part> row_parts = is_one ? PartsOf(*one) : std::vector<Part>(1);
    for (const Part& part : row_parts) {
      llvm::Value *begin = Begin(), *end = End();
      emitter_.AtInnermost();
      if (row_parts.size() > 1) {
        begin = Larger(begin, I64(part.begin));
        end = Smaller(end, I64(part.end));
      }
      emitter_.Loop(begin, end, 1, {}, [&](llvm::Value* row, const Accumulators&) {
        Index index = Unflatten(row, emitter_.level(), rows);
        if (row_parts.size() > 1) {
          Position& position = index[one - rows.begin()].position;
          position = Within(position, part);
        }
        EmitColumnParts(index, columns);
        return Accumulators{};
      });
    }
  }

  void EmitColumnParts(const Index& row, const Run& columns) {
    const std::vector<Part> parts = PartsOf(columns);
    const auto store = [&](const Position& position) {
      Index index = row;
      index.push_back({columns.begin, columns.end, position});
      StoreFull(index);
    };
    if (parts.size() == 1) {
      LaneLoop(columns, row, {}, 1, [&](const Index& index, const Accumulators&) {
        StoreFull(index);
        return Accumulators{};
      });
      return;
    }
    for (const Part& part : parts) {
      const int64_t full = part.begin + (part.end - part.begin) / lanes_ * lanes_;
      if (part.begin < full) {
        emitter_.Loop(I64(part.begin), I64(full), lanes_, {},
                      [&](llvm::Value* variable, const Accumulators&) {
                        store(Within(emitter_.LanePosition(variable, emitter_.level(),
                                                           std::gcd(part.begin, lanes_)),
                                     part));
                        return Accumulators{};
                      });
      }
      if (full + 1 == part.end) {
        store(emitter_.ConstantPosition(full));
      } else if (full < part.end) {
        WithMask(emitter_.FirstLanes(part.end - full), 0,
                 [&] { store(Within(emitter_.LanePosition(I64(full), 0, full), part)); });
      }
    }
  }

  // Vectors of a run with seams: a part's first is not one of the run's.
  void EmitFlatPart(const Part& part, const std::function<void(const Position&)>& store) {
    emitter_.AtInnermost();
    llvm::Value* begin = Larger(b_.CreateMul(Begin(), I64(lanes_)), I64(part.begin));
    llvm::Value* end = Smaller(b_.CreateMul(End(), I64(lanes_)), I64(part.end));
    llvm::Value* vectors = b_.CreateSDiv(b_.CreateSub(end, begin), I64(lanes_));
    llvm::Value* full = b_.CreateAdd(begin, b_.CreateMul(vectors, I64(lanes_)));
    emitter_.Loop(begin, full, lanes_, {}, [&](llvm::Value* variable, const Accumulators&) {
      store(Within(emitter_.LanePosition(variable, emitter_.level(), 1), part));
      return Accumulators{};
    });
    emitter_.AtInnermost();
    emitter_.If(b_.CreateICmpSGT(end, full), [&] {
      emitter_.AtInnermost();
      llvm::Value* rest = b_.CreateSub(end, full);
      WithMask(emitter_.FirstLanes(rest), emitter_.level(),
               [&] { store(Within(emitter_.LanePosition(full, emitter_.level(), 1), part)); });
    });
  }

  void EmitFlat(const Run& run) {
    const Extent full = run.size / lanes_;
    SetWork({(run.size + (lanes_ - 1)) / lanes_, element_cost_, lanes_});
    const std::vector<Part> parts = PartsOf(run);
    if (parts.size() > 1) {
      for (const Part& part : parts) {
        EmitFlatPart(
            part, [&](const Position& position) { StoreFull({{run.begin, run.end, position}}); });
      }
      return;
    }
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

  static constexpr size_t kMostCode = 256;      // instructions
  std::map<int64_t, std::set<int64_t>> seams_;  // of the space's dimensions
  // Of the rank of a reduce: one element for each row.
  std::set<const Instruction*> row_results_;
};

}  // namespace

KernelInfo EmitLoopKernel(llvm::Module& module, const std::string& name,
                          const Instruction& composite, KernelSizes& sizes) {
  return LoopKernel(module, name, composite, sizes).Emit();
}

}  // namespace cpu
