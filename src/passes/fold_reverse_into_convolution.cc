#include "passes/passes.h"

#include <algorithm>

#include "passes/for_each_computation.h"

namespace passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// The convolution's attributes with the reverse in them; false where a reversed dimension is no
// spatial one.
bool Absorb(const hlo::Dimensions& reversed, hlo::ConvolutionAttributes& attributes) {
  const hlo::Dimensions& spatial = attributes.dimensions.kernel_spatial_dimensions;
  attributes.window.reversal.resize(spatial.size(), false);
  for (int64_t d : reversed) {
    auto found = std::find(spatial.begin(), spatial.end(), d);
    if (found == spatial.end()) return false;
    size_t i = found - spatial.begin();
    attributes.window.reversal[i] = !attributes.window.reversal[i];
  }
  return true;
}

bool FoldInto(hlo::Computation& computation, Instruction* convolution) {
  Instruction* reverse = convolution->operand(1);
  if (reverse->opcode() != Opcode::kReverse) return false;
  auto attributes = convolution->as<hlo::ConvolutionAttributes>();
  if (!Absorb(reverse->as<hlo::DimensionsAttributes>().dimensions, attributes)) return false;
  Instruction* folded =
      computation.Add(Opcode::kConvolution, convolution->shape(),
                      {convolution->operand(0), reverse->operand(0)}, std::move(attributes));
  folded->set_metadata(convolution->shared_metadata());
  convolution->ReplaceAllUsesWith(folded);
  return true;
}

bool FoldAll(hlo::Computation& computation) {
  const auto is_found = [](const Instruction& i) { return i.opcode() == Opcode::kConvolution; };
  return RewriteEach(computation, is_found,
                     [&](Instruction* convolution) { return FoldInto(computation, convolution); });
}

}  // namespace

bool FoldReverseIntoConvolution(hlo::Module& module) { return ForEachComputation(module, FoldAll); }

}  // namespace passes
