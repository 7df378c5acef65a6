#include "cpu/kernel_kind.h"

#include <algorithm>
#include <unordered_set>

#include "cpu/element_cost.h"
#include "hlo/error.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Whether a value of a fused loop becomes results at its own index only, by element-wise
// operations. `known`: those that were asked about; one that does not ends the walk.
bool StaysInPlace(const Instruction* value, const hlo::Dimensions& space,
                  std::unordered_set<const Instruction*>& known) {
  if (!known.insert(value).second) return true;
  return std::ranges::all_of(value->users(), [&](const Instruction* user) {
    const bool is_elementwise =
        hlo::IsElementwise(user->opcode()) || user->opcode() == Opcode::kMap ||
        user->opcode() == Opcode::kComposite || user->opcode() == Opcode::kBitcastConvert;
    return is_elementwise && value->dimensions() == space && StaysInPlace(user, space, known);
  });
}

// Whether a fused loop reads an operand's elements only before it writes the same ones of its
// results.
bool IsReadInPlace(const Computation& body, int64_t operand) {
  const bool reduces = std::ranges::any_of(
      body.instructions(), [](const auto& i) { return i->opcode() == Opcode::kReduce; });
  if (reduces) return false;
  std::unordered_set<const Instruction*> known;
  return StaysInPlace(body.parameter(operand), body.result()->dimensions(), known);
}

// Element by element: of the same width.
bool LoopMayOverwrite(const Instruction& composite, int64_t operand, int64_t result) {
  const hlo::Shape& from = composite.operand(operand)->shape();
  const hlo::Shape& to =
      composite.shape().is_tuple() ? composite.shape().tuple_shapes()[result] : composite.shape();
  return hlo::ByteWidth(from.element_type()) == hlo::ByteWidth(to.element_type()) &&
         from.dimensions() == to.dimensions() &&
         IsReadInPlace(*composite.called_computations()[0], operand);
}

// Only what it updates, and that only by its own result: nothing else reads it, the scatter's other
// operands included.
bool ScatterMayOverwrite(const Instruction& composite, int64_t operand, int64_t result) {
  const Instruction* scatter = WrappedBy(composite);
  const Instruction* updated = scatter->operand(result);
  return updated->parameter_number() == operand && updated->users().size() == 1 &&
         std::ranges::count(scatter->operands(), updated) == 1;
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
constexpr KernelKind kTopKCall = {
    .name = "cpu.top_k",
    .step = kLibrary,
    .category = "sort",
    .step_name = "top-k",
};

const KernelKind* KindOf(const Instruction& instruction) {
  static constexpr const KernelKind* kKinds[] = {&kLoopKernel,      &kReduceKernel,  &kScanKernel,
                                                 &kScatterKernel,   &kSortKernel,    &kDotCall,
                                                 &kConvolutionCall, &kAttentionCall, &kTopKCall};
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
