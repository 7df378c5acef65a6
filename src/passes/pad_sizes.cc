#include "passes/pad_sizes.h"

#include <algorithm>

#include "hlo/error.h"
#include "passes/size_padder.h"

namespace passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Shape;

bool HasNoElements(const Computation& computation) {
  return std::ranges::any_of(computation.instructions(), [](const auto& instruction) {
    const Shape& shape = instruction->shape();
    return shape.is_array() && std::ranges::count(shape.dimensions(), 0) > 0;
  });
}

}  // namespace

PaddingRefused::PaddingRefused(const Instruction& instruction, const std::string& why)
    : hlo::Error(hlo::ErrorCode::kUnimplemented,
                 std::string(hlo::Name(instruction.opcode())) + " is not padded: " + why),
      metadata_(instruction.metadata()) {}

PaddedProgram PadSizes(const hlo::Module& module, const VaryingParts& parts,
                       const std::function<int64_t(int64_t)>& padded) {
  PaddedProgram program;
  program.module = module.Clone();
  hlo::Module& clone = *program.module;
  Computation& entry = *clone.entry();
  if (HasNoElements(entry))
    throw PaddingRefused(*entry.instructions()[0], "a value has no elements");
  SizePadder padder(clone, parts, padded);
  program.arguments = padder.Run();
  for (const Instruction* p : entry.parameters()) program.parameters.push_back(padder.BoxOf(p));
  for (const Instruction* r : entry.results()) program.results.push_back(padder.BoxOf(r));
  std::erase_if(clone.input_output_aliases, [&](const hlo::InputOutputAlias& alias) {
    return program.results[static_cast<size_t>(alias.output)].is_padded() ||
           program.parameters[static_cast<size_t>(alias.parameter)].is_padded();
  });
  clone.set_entry(&padder.target());
  padder.target().RemoveDeadInstructions();
  clone.RemoveUnreachableComputations();
  clone.SortComputations();
  return program;
}

}  // namespace passes
