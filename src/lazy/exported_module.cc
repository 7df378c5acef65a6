#include "lazy/exported_module.h"

#include <cmath>
#include <optional>
#include <utility>

#include "hlo/builder.h"
#include "lazy/resolve_marks.h"
#include "passes/constant_value.h"
#include "passes/passes.h"

namespace lazy {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Splats up to this size are written out: text says the value once, whatever the size.
constexpr int64_t kMaxSplat = int64_t{1} << 16;

// Numbers that upstream never passes as data, because programs with them simplify.
bool IsSpecial(const hlo::Literal& number) {
  return number.IsAll(0) || number.IsAll(1) || number.IsAll(-1);
}

// Replaces a pack, a parameter of which every use is a slice, by the numbers in it.
class PackExpansion {
 public:
  PackExpansion(const ScalarPack& pack, Instruction* parameter, ExportedModule& out)
      : pack_(pack), parameter_(parameter), builder_(parameter->parent()), out_(out) {}

  void Expand(bool inlines_numbers) {
    const std::vector<Instruction*> slices = parameter_->users();
    for (Instruction* slice : slices) ExpandSlice(slice, inlines_numbers);
    builder_.computation()->SortTopologically();
    builder_.computation()->RemoveDeadInstructions();
    builder_.computation()->Remove(parameter_);
  }

 private:
  void ExpandSlice(Instruction* slice, bool inlines_numbers) {
    const int64_t start = slice->as<hlo::SliceAttributes>().start_indices[0];
    const auto offset = start * hlo::Shape::Scalar(pack_.type).byte_size();
    const auto* bytes = pack_.bytes.data() + offset;
    const std::vector<Instruction*> users = slice->users();
    for (Instruction* user : users) {
      if (user->opcode() != Opcode::kReshape || !user->shape().is_scalar()) continue;
      const hlo::Literal number(user->shape(), bytes);
      const bool is_constant = inlines_numbers || IsSpecial(number);
      user->ReplaceAllUsesWith(is_constant ? builder_.Constant(number) : Parameter(number));
    }
    slice->ReplaceAllUsesWith(builder_.Constant(hlo::Literal(slice->shape(), bytes)));
  }

  hlo::Value Parameter(const hlo::Literal& number) {
    out_.numbers.push_back(number);
    return builder_.Parameter(number.shape());
  }

  const ScalarPack& pack_;
  Instruction* parameter_;
  hlo::Builder builder_;
  ExportedModule& out_;
};

// broadcast_in_dim of a constant becomes a constant.
void FoldSplats(hlo::Computation& computation) {
  hlo::Builder builder(&computation);
  const size_t count = computation.instructions().size();
  for (size_t i = 0; i < count; ++i) {
    Instruction* instruction = computation.instructions()[i].get();
    if (instruction->opcode() != Opcode::kBroadcastInDim) continue;
    if (instruction->shape().num_elements() > kMaxSplat) continue;
    const std::optional<hlo::Literal> scalar = passes::SplatOf(instruction);
    if (!scalar) continue;
    builder.set_metadata(instruction->shared_metadata());
    instruction->ReplaceAllUsesWith(
        builder.Constant(hlo::Literal::Splat(instruction->shape(), *scalar)));
  }
  computation.SortTopologically();
}

void Simplify(hlo::Module& module) {
  passes::FoldConstants(module);
  for (const auto& computation : module.computations()) FoldSplats(*computation);
  passes::EliminateDeadCode(module);
  passes::EliminateCommonSubexpressions(module);
}

}  // namespace

ExportedModule ExportGraph(const Graph& graph, const std::string& name, bool inlines_numbers) {
  ExportedModule out;
  out.module = graph.LowerWithMarks(name);
  hlo::Computation& entry = *out.module->entry();
  std::vector<Instruction*> results;
  for (uint32_t result : graph.result_of_root()) results.push_back(entry.result(result));
  entry.set_results(std::move(results));
  const size_t first_pack = graph.data_leaves().size();
  for (const ScalarPack& pack : graph.scalar_packs()) {
    PackExpansion(pack, entry.parameter(first_pack), out).Expand(inlines_numbers);
  }
  ResolveMarks(*out.module);
  Simplify(*out.module);
  return out;
}

}  // namespace lazy
