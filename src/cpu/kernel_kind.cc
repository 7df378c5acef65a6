#include "cpu/kernel_kind.h"

#include <algorithm>
#include <set>

#include "cpu/element_cost.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Operands of a fused loop that it reads, each element only before it writes the same element of
// its results.
std::set<int64_t> ElementwiseOperands(const Computation& body) {
  std::set<int64_t> result;
  const hlo::Dimensions& space = body.result()->dimensions();
  for (const auto& instruction : body.instructions()) {
    if (instruction->opcode() == Opcode::kReduce) return result;
  }
  std::set<const Instruction*> identity(body.results().begin(), body.results().end());
  std::set<const Instruction*> other;
  for (auto it = body.instructions().rbegin(); it != body.instructions().rend(); ++it) {
    const Instruction* instruction = it->get();
    const bool pass =
        identity.contains(instruction) && !other.contains(instruction) &&
        (hlo::IsElementwise(instruction->opcode()) || instruction->opcode() == Opcode::kMap ||
         instruction->opcode() == Opcode::kComposite ||
         instruction->opcode() == Opcode::kBitcastConvert);
    for (const Instruction* operand : instruction->operands()) {
      (pass && operand->dimensions() == space ? identity : other).insert(operand);
    }
  }
  for (const Instruction* parameter : body.parameters()) {
    if (identity.contains(parameter) && !other.contains(parameter)) {
      result.insert(parameter->parameter_number());
    }
  }
  return result;
}

// Element by element: of the same width.
bool LoopMayOverwrite(const Instruction& composite, int64_t operand, int64_t result) {
  const hlo::Shape& from = composite.operand(operand)->shape();
  const hlo::Shape& to =
      composite.shape().is_tuple() ? composite.shape().tuple_shapes()[result] : composite.shape();
  return hlo::ByteWidth(from.element_type()) == hlo::ByteWidth(to.element_type()) &&
         from.dimensions() == to.dimensions() &&
         ElementwiseOperands(*composite.called_computations()[0]).contains(operand);
}

// Only what it updates, and that only by its own result.
bool ScatterMayOverwrite(const Instruction& composite, int64_t operand, int64_t result) {
  const auto& inputs = WrappedBy(composite)->operands();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_updated = static_cast<int64_t>(i) == result;
    if ((inputs[i]->parameter_number() == operand) != is_updated) return false;
  }
  return true;
}

double ScanCost(const Computation&) { return 2; }
double ScatterCost(const Computation&) { return 3; }
double ComparatorCost(const Computation&) { return 1; }

using enum KernelKind::Step;

}  // namespace

constexpr KernelKind kLoopKernel = {
    .name = "cpu.loop",
    .step = kKernel,
    .category = "loop fusion",
    .step_name = "fusion",
    .emit = EmitLoopKernel,
    .element_cost = ElementCost,
    .may_overwrite = LoopMayOverwrite,
};
constexpr KernelKind kReduceKernel = {
    .name = "cpu.reduce",
    .step = kKernel,
    .category = "reduce",
    .step_name = "reduce",
    .emit = EmitReduceKernel,
    .element_cost = ElementCost,
};
constexpr KernelKind kScanKernel = {
    .name = "cpu.scan",
    .step = kKernel,
    .category = "scan",
    .step_name = "scan",
    .emit = EmitScanKernel,
    .element_cost = ScanCost,
};
constexpr KernelKind kScatterKernel = {
    .name = "cpu.scatter",
    .step = kUpdate,
    .category = "scatter",
    .step_name = "scatter",
    .emit = EmitScatterKernel,
    .element_cost = ScatterCost,
    .may_overwrite = ScatterMayOverwrite,
};
constexpr KernelKind kSortKernel = {
    .name = "cpu.sort",
    .step = kComparator,
    .category = "sort",
    .step_name = "sort",
    .emit = EmitComparatorKernel,
    .element_cost = ComparatorCost,
};
constexpr KernelKind kDotCall = {
    .name = "cpu.dot",
    .step = kLibrary,
    .category = "dot",
    .step_name = "dot-general",
};
constexpr KernelKind kConvolutionCall = {
    .name = "cpu.convolution",
    .step = kLibrary,
    .category = "convolution fusion",
    .step_name = "convolution",
};
constexpr KernelKind kAttentionCall = {
    .name = "cpu.attention",
    .step = kLibrary,
    .category = "attention",
    .step_name = "attention",
};

const KernelKind* KindOf(const Instruction& instruction) {
  static constexpr const KernelKind* kKinds[] = {&kLoopKernel,      &kReduceKernel, &kScanKernel,
                                                 &kScatterKernel,   &kSortKernel,   &kDotCall,
                                                 &kConvolutionCall, &kAttentionCall};
  if (instruction.opcode() != Opcode::kComposite) return nullptr;
  const std::string& name = instruction.as<hlo::CompositeAttributes>().name;
  if (!name.starts_with("cpu.")) return nullptr;
  const auto found = std::ranges::find(kKinds, name, &KernelKind::name);
  if (found != std::end(kKinds)) return *found;
  std::string names;
  for (const KernelKind* kind : kKinds) (names += names.empty() ? "" : ", ") += kind->name;
  throw hlo::Error(hlo::ErrorCode::kInternal, "the CPU engine has no kind of kernel '" + name +
                                                  "'; there are " + names + ": " +
                                                  instruction.ToString());
}

bool NeedsKernel(const Instruction& instruction) {
  const KernelKind* kind = KindOf(instruction);
  return kind && kind->emit;
}

const Instruction* WrappedBy(const Instruction& composite) {
  const Instruction* result = composite.called_computations()[0]->result();
  return result->opcode() == Opcode::kGetTupleElement ? result->operand(0) : result;
}

}  // namespace cpu
