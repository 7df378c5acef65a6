// A sort's comparator. Its buffers are two elements of each operand, then a byte for the answer.
#include "cpu/emit/kernel.h"
#include "cpu/kernel_kind.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::ElementType;
using hlo::Instruction;

class ComparatorKernel : public Kernel {
 public:
  using Kernel::Kernel;

 private:
  void EmitBody() override {
    const Instruction* sort = WrappedBy(composite_);
    info_.unit_cost = element_cost_;
    std::vector<Element> arguments;
    const Computation& comparator = *sort->called_computations()[0];
    for (const Instruction* parameter : comparator.parameters()) {
      llvm::Value* pointer = emitter_.BufferPointer(parameter->parameter_number());
      arguments.push_back(
          emitter_.Load(pointer, emitter_.ConstantPosition(0), parameter->element_type()).element);
    }
    emitter_.AtInnermost();
    Element less = emitter_.Apply(comparator, arguments)[0];
    emitter_.Store(emitter_.BufferPointer(static_cast<int64_t>(arguments.size())),
                   emitter_.ConstantPosition(0), less, ElementType::kPred);
  }
};

}  // namespace

KernelInfo EmitComparatorKernel(llvm::Module& module, const std::string& name,
                                const Instruction& composite, KernelSizes& sizes) {
  return ComparatorKernel(module, name, composite, sizes).Emit();
}

}  // namespace cpu
