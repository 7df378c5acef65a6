// dot_general as its definition: a sum of products for each element of the result.
#include <algorithm>

#include "hlo/evaluation.h"

namespace hlo::evaluation {
namespace {

// How one operand's elements are addressed: strides over the result's dimensions (0 where a
// dimension is the other operand's) and over the contracted ones.
struct Addressing {
  Dimensions result_strides, contracted_strides;
};

Addressing Address(const Shape& shape, const Dimensions& batching, const Dimensions& contracting,
                   int64_t free_before, int64_t free_after) {
  Dimensions strides = RowMajorStrides(shape.dimensions());
  Addressing addressing;
  for (int64_t i : batching) addressing.result_strides.push_back(strides[i]);
  addressing.result_strides.insert(addressing.result_strides.end(), free_before, 0);
  for (int64_t i = 0; i < shape.rank(); ++i) {
    bool is_free = std::ranges::find(batching, i) == batching.end() &&
                   std::ranges::find(contracting, i) == contracting.end();
    if (is_free) addressing.result_strides.push_back(strides[i]);
  }
  addressing.result_strides.insert(addressing.result_strides.end(), free_after, 0);
  for (int64_t i : contracting) addressing.contracted_strides.push_back(strides[i]);
  return addressing;
}

}  // namespace

Leaves EvaluateDot(const Instruction& instruction, const Leaves& operands) {
  const auto& dot = instruction.as<DotAttributes>();
  const Shape &lhs = operands[0].shape(), &rhs = operands[1].shape();
  auto bound = static_cast<int64_t>(dot.lhs_batching_dimensions.size() +
                                    dot.lhs_contracting_dimensions.size());
  Addressing left = Address(lhs, dot.lhs_batching_dimensions, dot.lhs_contracting_dimensions, 0,
                            rhs.rank() - bound);
  Addressing right = Address(rhs, dot.rhs_batching_dimensions, dot.rhs_contracting_dimensions,
                             lhs.rank() - bound, 0);
  Dimensions contracted;
  for (int64_t i : dot.lhs_contracting_dimensions) contracted.push_back(lhs.dimension(i));

  return DispatchAccumulator(instruction.element_type(), [&]<typename Accumulator>() -> Leaves {
    auto x = ReadAs<Accumulator>(operands[0]), y = ReadAs<Accumulator>(operands[1]);
    std::vector<Accumulator> result(instruction.shape().num_elements());
    ForEachIndex(instruction.dimensions(), [&](const Dimensions& index, int64_t position) {
      int64_t x_origin = Dot(index, left.result_strides);
      int64_t y_origin = Dot(index, right.result_strides);
      Accumulator sum(0);
      ForEachIndex(contracted, [&](const Dimensions& k, int64_t) {
        sum += x[x_origin + Dot(k, left.contracted_strides)] *
               y[y_origin + Dot(k, right.contracted_strides)];
      });
      result[position] = sum;
    });
    return {WriteAs(instruction.shape(), result)};
  });
}

}  // namespace hlo::evaluation
