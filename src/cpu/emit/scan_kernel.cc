// Scans: running reductions along one dimension. Each unit of work scans a few strands side by
// side, as a strand waits for the sum of every element before it adds the next. A row of which each
// result is one of its elements is scanned by vectors.
#include <algorithm>
#include <optional>
#include <vector>

#include "cpu/element_cost.h"
#include "cpu/emit/reducing_kernel.h"
#include "cpu/kernel_kind.h"
#include "hlo/size_arithmetic.h"
#include "passes/combiner.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::Instruction;
using hlo::Opcode;

// As many strands hide the latency of an addition.
constexpr int64_t kMostRows = 8;
constexpr int64_t kMostVectors = 4;
// Rows that are scanned by vectors.
constexpr int64_t kMostRowsOfVectors = 4;

// Whether a combiner chooses one of two real elements, and of equal ones that one: groups of
// elements may be combined first then, and nothing is rounded.
bool IsChoice(const hlo::Computation& combiner) {
  if (const auto operation = passes::CombinerOf(combiner)) {
    if (hlo::IsComplex(combiner.result()->element_type())) return false;
    return *operation == Opcode::kMaximum || *operation == Opcode::kMinimum;
  }
  const std::vector<Instruction*>& results = combiner.results();
  const auto count = static_cast<int64_t>(results.size());
  for (int64_t i = 0; i < count; ++i) {
    if (results[i]->opcode() != Opcode::kSelect) return false;
    std::vector<int64_t> chosen;
    for (int64_t arm : {1, 2}) {
      const Instruction* element = results[i]->operand(arm);
      if (element->opcode() != Opcode::kParameter || hlo::IsComplex(element->element_type())) {
        return false;
      }
      chosen.push_back(element->parameter_number());
    }
    std::ranges::sort(chosen);
    if (chosen != std::vector<int64_t>{i, count + i}) return false;
  }
  return true;
}

// Where a scalar or vector of running sums stands besides the scanned dimension.
struct Strand {
  Position row, column;      // in the dimensions before the scanned one, and behind it
  BodyEmitter::Mask inside;  // of the lanes
};

class ScanKernel : public ReducingKernel {
 public:
  using ReducingKernel::ReducingKernel;

 private:
  void EmitBody() override {
    scan_ = WrappedBy(composite_);
    space_ = scan_->operand(0)->dimensions();
    const auto& window = scan_->as<hlo::Window>();
    dimension_ = 0;
    while (window.dimensions[dimension_] == 1) ++dimension_;
    const int64_t rank = static_cast<int64_t>(space_.size());
    length_ = emitter_.Size(space_[dimension_]);
    forward_ = window.padding_low[dimension_] != 0;
    const Extent rows = emitter_.Product(space_, 0, dimension_);
    const Extent columns = emitter_.Product(space_, dimension_ + 1, rank);
    if (!columns.Is(1)) return EmitVectors(rows, columns, true);
    // Reading and writing one element of each row is slow, unless a good deal is computed of it.
    const bool is_expensive =
        std::ranges::any_of(scan_->called_computations()[0]->instructions(),
                            [](const auto& instruction) { return IsExpensive(*instruction); });
    if (is_expensive && rows.value > 1) return EmitVectors(rows, columns, false);
    by_vectors_ = lanes_ > 1 && forward_ && !emitter_.IsLess(length_, 2 * lanes_) &&
                  IsChoice(*scan_->called_computations()[0]);
    EmitRows(rows);
  }

  // Strands of lanes, along the columns or along the rows.
  void EmitVectors(const Extent& rows, const Extent& columns, bool along_columns) {
    const Extent& across = along_columns ? columns : rows;
    const int64_t vectors = hlo::CeilDivide(across.value, lanes_);
    const int64_t count = std::min(vectors, kMostVectors);
    const int64_t block_size = count * lanes_;
    Extent blocks = (across + (block_size - 1)) / block_size;
    if (blocks.value == 1) blocks = 1;
    const bool ragged = across.divisor % block_size != 0;
    EmitUnits(along_columns ? rows * blocks : blocks, block_size, [&](const Position& unit) {
      const Position block = !along_columns ? unit
                             : blocks.Is(1) ? emitter_.ConstantPosition(0)
                                            : emitter_.Remainder(unit, blocks);
      const Position row = along_columns ? emitter_.Divide(unit, blocks) : Position{};
      const Position first = emitter_.Multiply(block, block_size);
      std::vector<Strand> strands;
      for (int64_t i = 0; i < count; ++i) {
        const Position lanes = emitter_.LanesFrom(emitter_.Add(first, i * lanes_));
        Strand strand = along_columns ? Strand{row, lanes, {}}
                                      : Strand{lanes, emitter_.ConstantPosition(0), {}};
        if (ragged) strand.inside = emitter_.InRange(lanes, across);
        strands.push_back(strand);
      }
      return strands;
    });
  }

  // Strands of single numbers, each a row. The last unit's may be one row several times.
  void EmitRows(const Extent& rows) {
    const int64_t count = std::min(rows.value, by_vectors_ ? kMostRowsOfVectors : kMostRows);
    const Extent units = count == 1 ? rows : (rows + (count - 1)) / count;
    EmitUnits(units, count, [&](const Position& unit) {
      const Position first = emitter_.Multiply(unit, count);
      std::vector<Strand> strands;
      for (int64_t i = 0; i < count; ++i) {
        Position row = emitter_.Add(first, i);
        if (count > 1 && rows.divisor % count != 0) {
          llvm::Value* last = I64(rows - 1);
          emitter_.AtInnermost();
          llvm::Value* is_one = b_.CreateICmpSLT(row.base, last);
          row = emitter_.ScalarPosition(b_.CreateSelect(is_one, row.base, last), emitter_.level());
        }
        strands.push_back({row, emitter_.ConstantPosition(0), {}});
      }
      return strands;
    });
  }

  // `elements` of a unit are scanned side by side.
  void EmitUnits(const Extent& units, int64_t elements, const auto& strands_of) {
    info_.units = units.value;
    info_.unit_cost = element_cost_ *
                      static_cast<double>(length_.value * std::max<int64_t>(1, elements / lanes_));
    emitter_.Loop(Begin(), End(), 1, {}, [&](llvm::Value* unit, const Accumulators&) {
      ScanStrands(strands_of(emitter_.ScalarPosition(unit, emitter_.level())));
      return Accumulators{};
    });
  }

  void ScanStrands(const std::vector<Strand>& strands) {
    const ReductionPlan plan = PlanReduction(scan_);
    wide_ = WideOperation(plan);
    emitter_.AtInnermost();
    Accumulators initial;
    for (const Strand& strand : strands) {
      std::vector<Element> start = plan.init.empty() ? plan.initial : plan.init;
      const bool has_lanes = by_vectors_ || !(strand.row.uniform() && strand.column.uniform());
      if (lanes_ > 1 && has_lanes) emitter_.Widen(start, true);
      if (wide_) start[0].real = InF64(start[0].real);
      Flatten(start, initial);
    }
    Extent done = 0;
    if (by_vectors_) {
      done = length_ / lanes_ * lanes_;
      initial = ScanVectors(plan, strands, done, initial);
      if (length_.divisor % lanes_ == 0) return;
    }
    emitter_.Loop(I64(done), I64(length_), 1, initial,
                  [&](llvm::Value* step, const Accumulators& current) {
                    Position along = emitter_.ScalarPosition(step, emitter_.level());
                    if (!forward_) along = emitter_.Add(emitter_.Multiply(along, -1), length_ - 1);
                    return Advance(plan, strands, along, current);
                  });
  }

  // The first `end` elements of rows. Gives the last results, as scalars.
  Accumulators ScanVectors(const ReductionPlan& plan, const std::vector<Strand>& rows,
                           const Extent& end, const Accumulators& initial) {
    Accumulators last = emitter_.Loop(
        I64(0), I64(end), lanes_, initial, [&](llvm::Value* step, const Accumulators& current) {
          const Position along = emitter_.LanePosition(step, emitter_.level(), lanes_);
          return AdvanceVectors(plan, rows, along, current);
        });
    emitter_.AtInnermost();
    for (llvm::Value*& value : last) value = b_.CreateExtractElement(value, uint64_t{0});
    return last;
  }

  // `current`: the results before each row's vector, in all lanes.
  Accumulators AdvanceVectors(const ReductionPlan& plan, const std::vector<Strand>& rows,
                              const Position& along, const Accumulators& current) {
    std::vector<std::vector<Element>> values;
    for (const Strand& row : rows) {
      std::vector<Element>& inputs = values.emplace_back();
      for (size_t i = 0; i < plan.types.size(); ++i) {
        inputs.push_back(emitter_.Evaluate(scan_->operand(i), IndexOf(row, along)).element);
      }
      emitter_.AtInnermost();
      emitter_.Widen(inputs, true);
    }
    // After each step a lane has the result of twice as many elements up to its own.
    for (int distance = 1; distance < lanes_; distance *= 2) {
      for (std::vector<Element>& inputs : values) {
        inputs = Combine(plan, LanesBefore(inputs, distance), inputs);
      }
    }
    Accumulators next;
    size_t position = 0;
    for (size_t r = 0; r < rows.size(); ++r) {
      const std::vector<Element> sums =
          Combine(plan, Take(plan.types, current, position), values[r]);
      StoreSums(plan, sums, IndexOf(rows[r], along));
      emitter_.AtInnermost();
      const std::vector<int> last(lanes_, lanes_ - 1);
      for (const Element& sum : sums) next.push_back(b_.CreateShuffleVector(sum.real, last));
    }
    return next;
  }

  // In each lane the element `distance` lanes before; in the first lanes their own.
  std::vector<Element> LanesBefore(std::vector<Element> elements, int distance) {
    std::vector<int> lanes;
    for (int i = 0; i < lanes_; ++i) lanes.push_back(i < distance ? i : i - distance);
    emitter_.AtInnermost();
    for (Element& element : elements) {
      element.real = b_.CreateShuffleVector(element.real, lanes);
    }
    return elements;
  }

  // All that is read comes first: a strand's store need not be waited for then.
  Accumulators Advance(const ReductionPlan& plan, const std::vector<Strand>& strands,
                       const Position& along, const Accumulators& current) {
    std::vector<std::vector<Element>> values;
    for (const Strand& strand : strands) {
      emitter_.set_mask(strand.inside);
      std::vector<Element>& inputs = values.emplace_back();
      for (size_t i = 0; i < plan.types.size(); ++i) {
        inputs.push_back(emitter_.Evaluate(scan_->operand(i), IndexOf(strand, along)).element);
      }
    }
    Accumulators next;
    size_t position = 0;
    for (size_t s = 0; s < strands.size(); ++s) {
      std::vector<Element> sums = Take(plan.types, current, position);
      if (wide_) {
        sums = {CombineWide(sums[0], values[s][0])};
      } else {
        // The operands stay in the order of the elements.
        sums = forward_ ? Combine(plan, sums, values[s]) : Combine(plan, values[s], sums);
      }
      emitter_.set_mask(strands[s].inside);
      StoreSums(plan, sums, IndexOf(strands[s], along));
      Flatten(sums, next);
    }
    emitter_.set_mask({});
    return next;
  }

  // Sums and products of f32 are kept in f64, as in eager: a strand has as many roundings as
  // elements.
  static std::optional<Opcode> WideOperation(const ReductionPlan& plan) {
    if (plan.types.size() != 1 || plan.types[0] != hlo::ElementType::kF32) return std::nullopt;
    const std::optional<Opcode> operation = passes::CombinerOf(*plan.combiner);
    if (operation != Opcode::kAdd && operation != Opcode::kMultiply) return std::nullopt;
    return operation;
  }

  llvm::Value* InF64(llvm::Value* value) {
    llvm::Type* wide = value->getType()->getWithNewType(b_.getDoubleTy());
    return b_.CreateFPExt(value, wide);
  }

  Element CombineWide(const Element& sum, const Element& value) {
    emitter_.AtInnermost();
    llvm::Value* next = value.real;
    if (sum.real->getType()->isVectorTy() && !next->getType()->isVectorTy()) {
      next = b_.CreateVectorSplat(lanes_, next);
    }
    next = InF64(next);
    return {*wide_ == Opcode::kAdd ? b_.CreateFAdd(sum.real, next) : b_.CreateFMul(sum.real, next),
            nullptr};
  }

  void StoreSums(const ReductionPlan& plan, const std::vector<Element>& sums, const Index& index) {
    const Position place = emitter_.Linearize(index, space_);
    for (size_t i = 0; i < sums.size(); ++i) {
      Element rounded = sums[i];
      emitter_.AtInnermost();
      if (wide_) {
        llvm::Type* narrow = rounded.real->getType()->getWithNewType(b_.getFloatTy());
        rounded.real = b_.CreateFPTrunc(rounded.real, narrow);
      }
      if (!hlo::IsComplex(plan.types[i])) {
        rounded.real = emitter_.elementwise().Round(rounded.real, plan.types[i]);
      }
      emitter_.Store(ResultPointer(i), place, rounded, plan.types[i]);
    }
  }

  Index IndexOf(const Strand& strand, const Position& along) const {
    const int64_t rank = static_cast<int64_t>(space_.size());
    Index index;
    if (dimension_ > 0) index.push_back({0, dimension_, strand.row});
    index.push_back({dimension_, dimension_ + 1, along});
    if (dimension_ + 1 < rank) index.push_back({dimension_ + 1, rank, strand.column});
    return index;
  }

  const Instruction* scan_ = nullptr;
  Dimensions space_;
  int64_t dimension_ = 0;  // that is scanned
  Extent length_;          // of it
  bool forward_ = true;
  bool by_vectors_ = false;     // along the rows
  std::optional<Opcode> wide_;  // what is computed in f64
};

}  // namespace

KernelInfo EmitScanKernel(llvm::Module& module, const std::string& name,
                          const Instruction& composite, KernelSizes& sizes) {
  return ScanKernel(module, name, composite, sizes).Emit();
}

}  // namespace cpu
