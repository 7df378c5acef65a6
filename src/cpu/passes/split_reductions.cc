#include "cpu/passes/engine_passes.h"

#include <algorithm>
#include <optional>

#include "hlo/builder.h"
#include "passes/combiner.h"
#include "passes/for_each_computation.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::Instruction;
using hlo::Opcode;

// The divisor of `size` that is nearest to `wanted`; 1 if there is none worth it.
int64_t Divisor(int64_t size, int64_t wanted) {
  for (int64_t parts = wanted; parts >= 4; --parts) {
    if (size % parts == 0) return parts;
  }
  for (int64_t parts = wanted; parts <= 4 * wanted; ++parts) {
    if (size % parts == 0) return parts;
  }
  return 1;
}

// False if it stays.
bool Split(hlo::Computation& computation, Instruction* reduce) {
  const Dimensions& from = reduce->operand(0)->dimensions();
  const Dimensions& reduced = reduce->as<hlo::DimensionsAttributes>().dimensions;
  const int64_t results = reduce->shape().num_elements();
  const int64_t total = reduce->operand(0)->shape().num_elements();
  if (total < 131072 || results * 16 > total) return false;
  // How many independent units the kernel has without: rows, or blocks of columns.
  const int64_t last = static_cast<int64_t>(from.size()) - 1;
  const bool rows = std::find(reduced.begin(), reduced.end(), last) != reduced.end();
  const int64_t units = rows ? results : results / 64;
  if (units >= 16) return false;
  // The outermost reduced dimension is cut.
  const int64_t dimension = *std::min_element(reduced.begin(), reduced.end());
  const int64_t parts = Divisor(from[dimension], 16);
  if (parts == 1 || parts == from[dimension]) return false;
  hlo::Builder b(&computation);
  Dimensions cut = from;
  cut[dimension] = from[dimension] / parts;
  cut.insert(cut.begin() + dimension, parts);
  Dimensions inner;
  for (int64_t d : reduced) inner.push_back(d >= dimension ? d + 1 : d);
  // Parts keep their place: the first reduced dimension has only kept ones before it.
  Instruction* init = reduce->operand(1);
  Instruction* shaped = b.Reshape(reduce->operand(0), cut);
  Instruction* partial = b.Reduce(shaped, init, inner, reduce->called_computations()[0]);
  Instruction* whole = b.Reduce(partial, init, {dimension}, reduce->called_computations()[0]);
  reduce->ReplaceAllUsesWith(whole);
  return true;
}

// A combiner whose initial value may be folded in more than once.
bool StartsFromIdentity(const Instruction& reduce) {
  const std::optional<Opcode> combiner = passes::CombinerOf(*reduce.called_computations()[0]);
  return combiner && passes::HasIdentity(*combiner, reduce.element_type()) &&
         !hlo::IsComplex(reduce.element_type()) && reduce.operand(1)->IsConstant() &&
         reduce.operand(1)->literal() == hlo::IdentityLiteral(*combiner, reduce.element_type());
}

bool SplitAll(hlo::Computation& computation) {
  const auto is_found = [](const Instruction& instruction) {
    return instruction.opcode() == Opcode::kReduce && instruction.shape().is_array() &&
           StartsFromIdentity(instruction);
  };
  return passes::RewriteEach(computation, is_found,
                             [&](Instruction* reduce) { return Split(computation, reduce); });
}

}  // namespace

bool SplitReductions(hlo::Module& module) {
  const bool changed = passes::ForEachComputation(module, SplitAll);
  if (changed) module.SortComputations();
  return changed;
}

}  // namespace cpu
