// reduce and map: a scalar computation over elements, in row-major order.
#include <algorithm>

#include "hlo/evaluation.h"

namespace hlo::evaluation {
namespace {

// For each input dimension, the stride of the result along it: 0 where it is reduced.
Dimensions ResultStrides(int64_t rank, const Dimensions& reduced, const Shape& result) {
  Dimensions strides(rank, 0), dense = RowMajorStrides(result.dimensions());
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i) {
    if (std::ranges::find(reduced, i) == reduced.end()) strides[i] = dense[next++];
  }
  return strides;
}

Literal ReduceFloatSum(const Shape& shape, const Literal& x, const Literal& init,
                       const Dimensions& strides) {
  return DispatchAccumulator(shape.element_type(), [&]<typename Accumulator>() {
    auto values = ReadAs<Accumulator>(x);
    std::vector<Accumulator> sums(shape.num_elements(), ReadAs<Accumulator>(init)[0]);
    ForEachIndex(x.shape().dimensions(), [&](const Dimensions& index, int64_t position) {
      sums[Dot(index, strides)] += values[position];
    });
    return WriteAs(shape, sums);
  });
}

Leaves Reduce(const Instruction& instruction, const Leaves& operands) {
  const Computation& body = *instruction.called_computations()[0];
  size_t count = operands.size() / 2;
  std::vector<Shape> shapes;
  AppendLeafShapes(instruction.shape(), shapes);
  const Shape& input = operands[0].shape();
  Dimensions strides =
      ResultStrides(input.rank(), instruction.as<DimensionsAttributes>().dimensions, shapes[0]);
  if (IsFloatSum(body)) return {ReduceFloatSum(shapes[0], operands[0], operands[1], strides)};

  // The body works in the result's types, to which inputs may be promoted.
  Leaves inputs, results;
  for (size_t i = 0; i < count; ++i) {
    inputs.push_back(ConvertElements(operands[i], shapes[i].element_type()));
    results.push_back(
        Literal::Splat(shapes[i], ConvertElements(operands[count + i], shapes[i].element_type())));
  }
  ScalarProgram program(body);
  std::vector<const std::byte*> parameters(2 * count);
  std::vector<std::byte*> out(count);
  ForEachIndex(input.dimensions(), [&](const Dimensions& index, int64_t position) {
    int64_t target = Dot(index, strides);
    for (size_t i = 0; i < count; ++i) {
      size_t width = ByteWidth(shapes[i].element_type());
      out[i] = results[i].mutable_bytes() + target * width;
      parameters[i] = out[i];
      parameters[count + i] = inputs[i].bytes() + position * width;
    }
    program.Run(parameters, out);
  });
  return results;
}

Leaves Map(const Instruction& instruction, const Leaves& operands) {
  ScalarProgram program(*instruction.called_computations()[0]);
  Literal result(instruction.shape());
  int64_t count = result.shape().num_elements();
  std::vector<const std::byte*> parameters(operands.size());
  for (int64_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < operands.size(); ++k) {
      parameters[k] = operands[k].bytes() + i * ByteWidth(operands[k].shape().element_type());
    }
    std::byte* const out[] = {result.mutable_bytes() + i * ByteWidth(instruction.element_type())};
    program.Run(parameters, out);
  }
  return {result};
}

}  // namespace

Leaves EvaluateReduction(const Instruction& instruction, const Leaves& operands) {
  return instruction.opcode() == Opcode::kReduce ? Reduce(instruction, operands)
                                                 : Map(instruction, operands);
}

}  // namespace hlo::evaluation
