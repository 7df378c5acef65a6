#include "aten/exported_program.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "aten/dtype.h"
#include "aten/lowering.h"
#include "aten/placeholder.h"
#include "aten/tensor.h"
#include "hlo/builder.h"
#include "lazy/capture.h"
#include "lazy/data.h"
#include "lazy/exported_module.h"
#include "lazy/graph.h"
#include "lazy/sync_mutex.h"

namespace torch_xla {
namespace {

at::Tensor NumberTensor(const hlo::Literal& number) {
  at::Tensor tensor = at::empty({}, at::dtype(ToScalarType(number.shape().element_type())));
  std::memcpy(tensor.data_ptr(), number.bytes(), number.byte_size());
  return tensor;
}

std::vector<lazy::Value> ResultValues(const std::vector<at::Tensor>& results) {
  std::vector<lazy::Value> values;
  for (const at::Tensor& result : results) {
    TORCH_CHECK(IsXla(result), "a result of what is exported is a tensor on xla, not one on ",
                result.device());
    values.push_back(ReadValue(result));
  }
  return values;
}

}  // namespace

ExportedProgram ExportFunction(
    lazy::Device* device, at::TensorList arguments, const std::vector<int64_t>& kept,
    bool inlines_numbers,
    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& function) {
  const lazy::CaptureScope scope;
  std::vector<at::Tensor> placeholders;
  std::vector<lazy::Value> leaves;
  std::unordered_map<const lazy::Node*, int64_t> argument_of_leaf;
  for (const at::Tensor& argument : arguments) {
    placeholders.push_back(
        Placeholder(device, argument.scalar_type(), argument.sizes(), argument.strides()));
    leaves.push_back(ReadValue(placeholders.back()));
    argument_of_leaf.emplace(leaves.back().node.get(), leaves.size() - 1);
  }
  const std::vector<at::Tensor> results = function(placeholders);
  std::lock_guard lock(lazy::SyncMutex());
  const std::vector<lazy::Value> values = ResultValues(results);
  const lazy::Graph graph = lazy::Graph::ToShow(values);
  lazy::ExportedModule exported = lazy::ExportGraph(graph, "IrToHlo", inlines_numbers);
  ExportedProgram program{std::move(exported.module), {}};
  for (lazy::Node* leaf : graph.data_leaves()) {
    const auto argument = argument_of_leaf.find(leaf);
    if (argument != argument_of_leaf.end()) {
      program.parameters.emplace_back(argument->second);
    } else {
      program.parameters.emplace_back(
          MakeTensor(leaf->data()->device(), {lazy::Reference<lazy::Node>(leaf), 0}));
    }
  }
  for (const hlo::Literal& number : exported.numbers) {
    program.parameters.emplace_back(NumberTensor(number));
  }
  hlo::Builder builder(program.module->entry());
  for (const int64_t argument : kept) {
    const auto is_argument = [&](const auto& parameter) {
      return std::holds_alternative<int64_t>(parameter) && std::get<int64_t>(parameter) == argument;
    };
    if (std::ranges::any_of(program.parameters, is_argument)) continue;
    const at::Tensor& tensor = arguments[argument];
    builder.Parameter(Shape(ToElementType(tensor.scalar_type()), tensor.sizes().vec()));
    program.parameters.emplace_back(argument);
  }
  return program;
}

}  // namespace torch_xla
