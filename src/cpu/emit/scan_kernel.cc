// Scans: a running reduction along one dimension.
#include "cpu/emit/reducing_kernel.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::Instruction;

class ScanKernel : public ReducingKernel {
 public:
  using ReducingKernel::ReducingKernel;

 private:
  void EmitBody() override {
    const Instruction* scan = body_.result();
    const auto& window = scan->as<hlo::Window>();
    const Dimensions& space = scan->dimensions();
    int64_t d = 0;
    while (window.dimensions[d] == 1) ++d;
    const bool forward = window.padding_low[d] != 0;
    const int64_t rank = static_cast<int64_t>(space.size());
    const Extent length = emitter_.Size(space[d]);
    const Extent inner = emitter_.Product(space, d + 1, rank);
    const int lanes = inner.value == 1 ? 1 : lanes_;
    Extent vectors = lanes == 1 ? inner : (inner + (lanes - 1)) / lanes;
    if (vectors.value == 1) vectors = 1;
    info_.units = hlo::Product(space, 0, d) * vectors.value;
    info_.unit_cost = element_cost_ * static_cast<double>(length.value);
    const bool ragged = lanes > 1 && inner.divisor % lanes != 0;
    emitter_.Loop(Begin(), End(), 1, {}, [&](llvm::Value* unit, const Accumulators&) {
      Position flat = emitter_.ScalarPosition(unit, emitter_.level());
      Position row = emitter_.Divide(flat, vectors);
      Position column = vectors.Is(1) ? emitter_.ConstantPosition(0)
                                      : emitter_.Multiply(emitter_.Remainder(flat, vectors), lanes);
      if (lanes > 1) column.stride = 1;
      if (ragged) emitter_.set_mask(emitter_.InRange(column, inner));
      ReductionPlan plan = PlanReduction(scan);
      std::vector<Element> start = {emitter_.Evaluate(scan->operand(1), {}).element};
      emitter_.AtInnermost();
      if (lanes > 1) emitter_.Widen(start, true);
      Accumulators initial;
      Flatten(start, initial);
      emitter_.Loop(I64(0), I64(length), 1, initial,
                    [&](llvm::Value* step, const Accumulators& current) {
                      Position along = emitter_.ScalarPosition(step, emitter_.level());
                      if (!forward) along = emitter_.Add(emitter_.Multiply(along, -1), length - 1);
                      Index index = {{0, d, row}, {d, d + 1, along}, {d + 1, rank, column}};
                      if (d == 0) index.erase(index.begin());
                      if (d + 1 == rank) index.pop_back();
                      size_t position = 0;
                      std::vector<Element> sum = Take(plan.types, current, position);
                      Element value = emitter_.Evaluate(scan->operand(0), index).element;
                      sum = Combine(plan, sum, {value});
                      Element rounded = sum[0];
                      emitter_.AtInnermost();
                      if (!hlo::IsComplex(plan.types[0])) {
                        rounded.real = emitter_.elementwise().Round(rounded.real, plan.types[0]);
                      }
                      emitter_.Store(ResultPointer(0), emitter_.Linearize(index, space), rounded,
                                     plan.types[0]);
                      Accumulators next;
                      Flatten(sum, next);
                      return next;
                    });
      emitter_.set_mask({});
      return Accumulators{};
    });
  }
};

}  // namespace

KernelInfo EmitScanKernel(llvm::Module& module, const std::string& name,
                          const Instruction& composite, KernelSizes& sizes) {
  return ScanKernel(module, name, composite, sizes).Emit();
}

}  // namespace cpu
