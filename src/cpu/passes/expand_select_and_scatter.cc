#include "cpu/passes/expand_select_and_scatter.h"

#include "hlo/builder.h"
#include "passes/for_each_computation.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;
using Value = Instruction*;
using Values = std::vector<Instruction*>;

// The position, in the operand, of each window's winner; -1 where a window lies in the padding.
Value Winners(Builder& b, const Instruction& instruction, const hlo::Window& window) {
  Value operand = instruction.operand(0);
  const ElementType type = operand->element_type();
  const Shape position_shape(ElementType::kS32, operand->dimensions());
  Value positions = b.Reshape(b.Iota(Shape(ElementType::kS32, {position_shape.num_elements()}), 0),
                              operand->dimensions());
  hlo::Computation* select = instruction.called_computations()[0];
  const Shape scalar = Shape::Scalar(type);
  const Shape index = Shape::Scalar(ElementType::kS32);
  hlo::Computation* body =
      b.Region("winner", {scalar, index, scalar, index}, [&](Builder& r, const Values& p) {
        Value keeps = hlo::InlineComputation(*select, *r.computation(), {p[0], p[2]})[0];
        Value none = r.ConstantScalar(ElementType::kS32, int64_t{-1});
        // What is absent (padding, the start) never wins.
        Value first = r.And(r.Ne(p[1], none), r.Or(keeps, r.Eq(p[3], none)));
        return Values{r.Select(first, p[0], p[2]), r.Select(first, p[1], p[3])};
      });
  Value start = b.Constant(hlo::Literal(scalar));
  Value none = b.ConstantScalar(ElementType::kS32, int64_t{-1});
  Value pair = b.Create(Opcode::kReduceWindow, {operand, positions, start, none}, window, {body});
  return b.GetTupleElement(pair, 1);
}

void Expand(hlo::Computation& computation, Instruction* instruction) {
  Builder b(&computation);
  b.set_metadata(instruction->shared_metadata());
  hlo::Window window = instruction->as<hlo::Window>();
  Value source = instruction->operand(1);
  Value init = instruction->operand(2);
  const Dimensions& dimensions = instruction->dimensions();
  const int64_t rank = instruction->shape().rank();
  window.base_dilations.assign(rank, 1);
  window.window_dilations.assign(rank, 1);
  Value winners = Winners(b, *instruction, window);
  hlo::Computation* scatter = instruction->called_computations()[1];
  Value own = b.Reshape(b.Iota(Shape(ElementType::kS32, {instruction->shape().num_elements()}), 0),
                        dimensions);
  Value result = b.BroadcastInDim(init, dimensions, {});
  Value none = b.ConstantScalar(ElementType::kS32, int64_t{-1});
  Value zero = b.Constant(hlo::Literal(Shape::Scalar(source->element_type())));
  int64_t positions = 1;
  for (int64_t size : window.dimensions) positions *= size;
  // An element is at later window positions for earlier windows.
  for (int64_t position = positions - 1; position >= 0; --position) {
    Dimensions low(rank), high(rank), interior(rank);
    int64_t rest = position;
    for (int64_t d = rank - 1; d >= 0; --d) {
      const int64_t k = rest % window.dimensions[d];
      rest /= window.dimensions[d];
      // Window o has this position at o * stride - padding + k.
      low[d] = k - window.padding_low[d];
      interior[d] = window.strides[d] - 1;
      const int64_t spread = (source->dimensions()[d] - 1) * window.strides[d] + 1;
      high[d] = dimensions[d] - low[d] - spread;
    }
    Value winner = b.Pad(winners, none, low, high, interior);
    Value update = b.Pad(source, zero, low, high, interior);
    hlo::Computation* map_body = scatter;
    Value scattered = b.Create(Opcode::kMap, {result, update},
                               [&] {
                                 hlo::DimensionsAttributes all;
                                 for (int64_t d = 0; d < rank; ++d) all.dimensions.push_back(d);
                                 return all;
                               }(),
                               {map_body});
    result = b.Select(b.Eq(winner, own), scattered, result);
  }
  instruction->ReplaceAllUsesWith(result);
}

bool HasElements(const Instruction& instruction) {
  return instruction.shape().num_elements() != 0 &&
         instruction.operand(1)->shape().num_elements() != 0;
}

bool ExpandSelectAndScatters(hlo::Computation& computation) {
  const auto is_found = [](const Instruction& instruction) {
    return instruction.opcode() == Opcode::kSelectAndScatter && HasElements(instruction);
  };
  return passes::RewriteEach(computation, is_found, [&](Instruction* instruction) {
    Expand(computation, instruction);
    return true;
  });
}

}  // namespace

bool ExpandSelectAndScatter(hlo::Module& module) {
  return passes::ForEachComputation(module, ExpandSelectAndScatters);
}

}  // namespace cpu
