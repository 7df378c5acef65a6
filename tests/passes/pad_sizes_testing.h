// A program of padded sizes as one of its own: it pads its arguments, with numbers that must not
// matter, and cuts the results.
#pragma once

#include <bit>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "hlo/builder.h"
#include "passes/pad_sizes.h"

namespace passes {

// Dimension `second` of parameter `first`.
using VaryingDimensions = std::set<std::pair<int64_t, int64_t>>;

inline int64_t PowerOfTwo(int64_t size) {
  return std::max<int64_t>(8, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size))));
}

inline VaryingParts PartsOf(const hlo::Module& module, const VaryingDimensions& dimensions) {
  VaryingParts parts;
  for (const auto& instruction : module.entry()->instructions()) {
    std::vector<bool>& varies = parts.dimensions.emplace_back(instruction->dimensions().size());
    parts.attributes.push_back(instruction->opcode() == hlo::Opcode::kSlice ||
                               instruction->opcode() == hlo::Opcode::kPad);
    if (instruction->opcode() != hlo::Opcode::kParameter) continue;
    for (size_t d = 0; d < varies.size(); ++d) {
      varies[d] = dimensions.contains({instruction->parameter_number(), static_cast<int64_t>(d)});
    }
  }
  return parts;
}

inline hlo::Value Garbage(hlo::Builder& b, hlo::ElementType type) {
  if (hlo::IsFloat(type)) return b.ConstantScalar(type, std::numeric_limits<double>::quiet_NaN());
  if (type == hlo::ElementType::kPred) return b.ConstantScalar(type, int64_t{1});
  return b.ConstantScalar(type, int64_t{77});
}

inline hlo::Value ToPadded(hlo::Builder& b, hlo::Value value, const PaddedBox& box) {
  if (!box.is_padded()) return value;
  hlo::Dimensions none(box.sizes.size()), high = none;
  for (size_t d = 0; d < high.size(); ++d) high[d] = box.padded[d] - box.sizes[d];
  value = b.Pad(b.Reshape(value, box.sizes), Garbage(b, value->element_type()), none, high, none);
  return b.Reshape(value, box.dimensions);
}

inline hlo::Value FromPadded(hlo::Builder& b, hlo::Value value, const PaddedBox& box,
                             const hlo::Dimensions& dimensions) {
  if (!box.is_padded()) return value;
  const hlo::Dimensions zeros(box.sizes.size()), ones(box.sizes.size(), 1);
  return b.Reshape(b.Slice(b.Reshape(value, box.padded), zeros, box.sizes, ones), dimensions);
}

// Puts the padded program in the place of the module's own. Throws PaddingRefused.
inline bool PadInside(hlo::Module& module, const VaryingDimensions& dimensions) {
  const PaddedProgram padded = PadSizes(module, PartsOf(module, dimensions), PowerOfTwo);
  hlo::Computation* entry = module.AddComputation("padded_main");
  hlo::Builder b(entry);
  std::vector<hlo::Value> arguments;
  for (size_t i = 0; i < padded.parameters.size(); ++i) {
    const hlo::Value parameter = b.Parameter(module.entry()->parameter(i)->shape());
    arguments.push_back(ToPadded(b, parameter, padded.parameters[i]));
  }
  for (const hlo::Literal& argument : padded.arguments) arguments.push_back(b.Constant(argument));
  std::vector<hlo::Value> results =
      hlo::InlineComputation(*padded.module->entry(), *entry, arguments);
  for (size_t i = 0; i < results.size(); ++i) {
    results[i] =
        FromPadded(b, results[i], padded.results[i], module.entry()->result(i)->dimensions());
  }
  entry->set_results(std::move(results));
  module.set_entry(entry);
  module.RemoveUnreachableComputations();
  module.SortComputations();
  return true;
}

}  // namespace passes
