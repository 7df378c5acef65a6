// reduce_window and select_and_scatter.
#include "hlo/evaluation.h"

namespace hlo::evaluation {
namespace {

// Where window cell `cell` of the window at `index` lies in a tensor of `dimensions`; false if that
// is padding or a hole of the base dilation.
bool Locate(const Window& window, const Dimensions& index, const Dimensions& cell,
            const Dimensions& dimensions, Dimensions& at) {
  for (size_t i = 0; i < index.size(); ++i) {
    int64_t position =
        index[i] * window.strides[i] + cell[i] * window.window_dilations[i] - window.padding_low[i];
    if (position < 0 || position % window.base_dilations[i] != 0) return false;
    at[i] = position / window.base_dilations[i];
    if (at[i] >= dimensions[i]) return false;
  }
  return true;
}

// Calls f(offset in the tensor) for the cells of a window that hold elements, in row-major order.
template <typename F>
void ForEachCell(const Window& window, const Dimensions& index, const Dimensions& dimensions,
                 const Dimensions& strides, F&& f) {
  Dimensions at(index.size());
  ForEachIndex(window.dimensions, [&](const Dimensions& cell, int64_t) {
    if (Locate(window, index, cell, dimensions, at)) f(Dot(at, strides));
  });
}

Literal WindowFloatSum(const Shape& shape, const Window& window, const Literal& x,
                       const Literal& init) {
  const Dimensions& dimensions = x.shape().dimensions();
  Dimensions strides = RowMajorStrides(dimensions);
  return DispatchAccumulator(shape.element_type(), [&]<typename Accumulator>() {
    auto values = ReadAs<Accumulator>(x);
    std::vector<Accumulator> sums(shape.num_elements(), ReadAs<Accumulator>(init)[0]);
    ForEachIndex(shape.dimensions(), [&](const Dimensions& index, int64_t position) {
      ForEachCell(window, index, dimensions, strides,
                  [&](int64_t offset) { sums[position] += values[offset]; });
    });
    return WriteAs(shape, sums);
  });
}

// The bodies work in the result's types, to which operands may be promoted.
Leaves Promote(const Leaves& operands, const std::vector<Shape>& results) {
  Leaves promoted;
  for (size_t i = 0; i < operands.size(); ++i) {
    promoted.push_back(ConvertElements(operands[i], results[i % results.size()].element_type()));
  }
  return promoted;
}

Leaves ReduceWindow(const Instruction& instruction, const Leaves& given) {
  const auto& window = instruction.as<Window>();
  const Computation& body = *instruction.called_computations()[0];
  std::vector<Shape> shapes;
  AppendLeafShapes(instruction.shape(), shapes);
  size_t count = shapes.size();
  Leaves operands = Promote(given, shapes);
  if (IsFloatSum(body)) return {WindowFloatSum(shapes[0], window, operands[0], operands[1])};

  const Dimensions& dimensions = operands[0].shape().dimensions();
  Dimensions strides = RowMajorStrides(dimensions);
  Leaves results;
  for (size_t i = 0; i < count; ++i) {
    results.push_back(Literal::Splat(shapes[i], operands[count + i]));
  }
  ScalarProgram program(body);
  std::vector<const std::byte*> parameters(2 * count);
  std::vector<std::byte*> out(count);
  ForEachIndex(shapes[0].dimensions(), [&](const Dimensions& index, int64_t position) {
    for (size_t i = 0; i < count; ++i) {
      out[i] = results[i].mutable_bytes() + position * ByteWidth(shapes[i].element_type());
      parameters[i] = out[i];
    }
    ForEachCell(window, index, dimensions, strides, [&](int64_t offset) {
      for (size_t i = 0; i < count; ++i) {
        parameters[count + i] = operands[i].bytes() + offset * ByteWidth(shapes[i].element_type());
      }
      program.Run(parameters, out);
    });
  });
  return results;
}

Leaves SelectAndScatter(const Instruction& instruction, const Leaves& given) {
  const auto& window = instruction.as<Window>();
  ScalarProgram select(*instruction.called_computations()[0]);
  ScalarProgram scatter(*instruction.called_computations()[1]);
  const Literal& x = given[0];
  ElementType type = instruction.element_type();
  Literal source = ConvertElements(given[1], type), init = ConvertElements(given[2], type);
  const Dimensions& dimensions = x.shape().dimensions();
  Dimensions strides = RowMajorStrides(dimensions);
  size_t width = ByteWidth(x.shape().element_type()), result_width = ByteWidth(type);
  Literal result = Literal::Splat(instruction.shape(), init);
  ForEachIndex(source.shape().dimensions(), [&](const Dimensions& index, int64_t position) {
    int64_t winner = -1;
    ForEachCell(window, index, dimensions, strides, [&](int64_t offset) {
      if (winner < 0) {
        winner = offset;
        return;
      }
      const std::byte* const pair[] = {x.bytes() + winner * width, x.bytes() + offset * width};
      if (!select.Test(pair)) winner = offset;
    });
    if (winner < 0) return;  // a window that covers padding alone
    std::byte* target = result.mutable_bytes() + winner * result_width;
    const std::byte* const pair[] = {target, source.bytes() + position * result_width};
    std::byte* const out[] = {target};
    scatter.Run(pair, out);
  });
  return {result};
}

}  // namespace

Leaves EvaluateWindow(const Instruction& instruction, const Leaves& operands) {
  return instruction.opcode() == Opcode::kReduceWindow ? ReduceWindow(instruction, operands)
                                                       : SelectAndScatter(instruction, operands);
}

}  // namespace hlo::evaluation
