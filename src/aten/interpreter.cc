// Runs a graph node by node with torch's CPU kernels (lazy/interpreter.h): on the memory of the
// device's buffers, which are the host's, and without copies.
#include "lazy/interpreter.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>

#include <array>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "aten/dtype.h"
#include "aten/eager_form.h"
#include "aten/host_tensor.h"
#include "aten/parallel_kernels.h"
#include "aten/plain_kernels.h"
#include "lazy/device.h"
#include "lazy/metrics.h"
#include "process/fork.h"

namespace torch_xla {
namespace eager {

namespace {

// Kernels that read their operands' memory as if it were row-major, and do not ask: the operators
// around them, which are not recorded, see to it.
bool WantsRowMajor(std::string_view name) {
  static const auto* names = new std::unordered_set<std::string_view>{
      "aten::adaptive_max_pool3d_backward",
      "aten::native_group_norm",
      "aten::native_group_norm_backward",
      "aten::native_layer_norm_backward",
  };
  return names->contains(name);
}

void MakeRowMajor(torch::jit::Stack& stack) {
  for (c10::IValue& value : stack) {
    if (value.isTensor() && value.toTensor().defined()) value = value.toTensor().contiguous();
  }
}

// Kernels that add numbers of 16 bits up in 16 bits, where sums stop at 256 or 2048. They get f32,
// and what they give is rounded once, as programs do it.
bool AddsInOperandType(std::string_view name) {
  static const auto* names = new std::unordered_set<std::string_view>{
      "aten::_adaptive_avg_pool2d_backward",
      "aten::_adaptive_avg_pool3d_backward",
      "aten::avg_pool2d_backward",
      "aten::col2im",
      "aten::grid_sampler_3d_backward",
      "aten::index_reduce",
      "aten::put",
      "aten::replication_pad1d_backward",
      "aten::replication_pad2d_backward",
      "aten::replication_pad3d_backward",
      "aten::segment_reduce",
      "aten::unfold_backward",
  };
  return names->contains(name);
}

// The type of 16 bits that all numbers among the arguments are of, if they are of one.
std::optional<at::ScalarType> NarrowType(const torch::jit::Stack& stack) {
  std::optional<at::ScalarType> type;
  for (const c10::IValue& value : stack) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::ScalarType given = value.toTensor().scalar_type();
    if (!at::isFloatingType(given)) continue;
    if (!at::isReducedFloatingType(given) || given != type.value_or(given)) return std::nullopt;
    type = given;
  }
  return type;
}

void Widen(torch::jit::Stack& stack, at::ScalarType type) {
  for (c10::IValue& value : stack) {
    const bool widens =
        value.isTensor() && value.toTensor().defined() && value.toTensor().scalar_type() == type;
    if (widens) value = value.toTensor().to(at::kFloat);
  }
}

}  // namespace

at::Scalar NumberOf(const at::Tensor& number) {
  if (number.numel() == 1 && !number.is_neg()) {
    switch (number.scalar_type()) {
      case at::kBool:
        return *number.const_data_ptr<bool>();
      case at::kLong:
        return *number.const_data_ptr<int64_t>();
      case at::kFloat:
        return *number.const_data_ptr<float>();
      case at::kDouble:
        return *number.const_data_ptr<double>();
      default:
        break;
    }
  }
  return number.item();
}

BoxedOperator::BoxedOperator(const std::string& name)
    : name_("aten::" + name.substr(0, name.find('.'))),
      overload_(name.find('.') == name.npos ? "" : name.substr(name.find('.') + 1)),
      wants_row_major_(WantsRowMajor(name_)),
      adds_in_operand_type_(AddsInOperandType(name_)) {}

std::vector<at::Tensor> BoxedOperator::Call(torch::jit::Stack stack) const {
  if (wants_row_major_) MakeRowMajor(stack);
  std::optional<at::ScalarType> narrow;
  if (adds_in_operand_type_) narrow = NarrowType(stack);
  if (narrow) Widen(stack, *narrow);
  if (!is_found_.load(std::memory_order_acquire)) {
    static process::Mutex finding;
    const std::lock_guard lock(finding);
    if (!handle_) {
      handle_ = c10::Dispatcher::singleton().findSchemaOrThrow(name_.c_str(), overload_.c_str());
    }
    is_found_.store(true, std::memory_order_release);
  }
  handle_->callBoxed(stack);
  std::vector<at::Tensor> tensors;
  for (c10::IValue& result : stack) {
    if (result.isTensorList()) {
      for (at::Tensor tensor : result.toTensorList()) tensors.push_back(std::move(tensor));
    } else {
      tensors.push_back(std::move(result).toTensor());
    }
  }
  if (narrow) {
    for (at::Tensor& tensor : tensors) tensor = tensor.defined() ? tensor.to(*narrow) : tensor;
  }
  return tensors;
}

}  // namespace eager

namespace {

// Scalars and indices lie in their nodes.
at::Tensor TensorOfNumber(lazy::Node* node) {
  const hlo::Shape& shape = *node->shape(0);
  void* memory = const_cast<std::byte*>(node->scalar().data());
  return at::from_blob(memory, shape.dimensions(),
                       at::TensorOptions(ToScalarType(shape.element_type())));
}

// The numbers of graphs, one after the other, in tensors that are kept from one graph to the next:
// to make one takes longer than most operations on it. Under SyncMutex.
class NumberTensors {
 public:
  NumberTensors() {
    for (Kept& kept : AllKept()) kept.next = 0;
  }

  at::Tensor Of(lazy::Node* node) {
    const hlo::Shape& shape = *node->shape(0);
    if (shape.rank() != 0) return TensorOfNumber(node);
    const at::ScalarType type = ToScalarType(shape.element_type());
    at::Tensor tensor = Next(AllKept()[static_cast<size_t>(type)], type);
    std::memcpy(tensor.mutable_data_ptr(), node->scalar().data(), tensor.nbytes());
    return tensor;
  }

 private:
  static constexpr size_t kMostKept = 256;

  struct Kept {
    std::vector<at::Tensor> tensors;
    size_t next = 0;
  };
  using KeptOfTypes = std::array<Kept, at::NumScalarTypes>;
  static KeptOfTypes& AllKept() {
    static auto* kept = new KeptOfTypes;
    return *kept;
  }

  // One that this graph has not had. What somebody else holds, or its memory, was a result: it
  // stays theirs.
  static at::Tensor Next(Kept& kept, at::ScalarType type) {
    if (kept.next == kMostKept) return at::empty({}, type);
    if (kept.next == kept.tensors.size()) kept.tensors.emplace_back();
    at::Tensor& tensor = kept.tensors[kept.next++];
    const bool is_free =
        tensor.defined() && tensor.use_count() == 1 && tensor.storage().use_count() == 1;
    if (!is_free) tensor = at::Tensor(at::detail::empty_cpu({}, type));
    return tensor;
  }
};

// Another result than the one that was recorded would be an operator that is not the lowering.
void CheckShapes(const lazy::Operation& operation, const std::vector<at::Tensor>& tensors) {
  auto shapes = operation.result_shapes();
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i] == nullptr) continue;
    if (i < tensors.size() && tensors[i].defined() &&
        tensors[i].sizes() == c10::IntArrayRef(shapes[i]->dimensions()) &&
        tensors[i].scalar_type() == ToScalarType(shapes[i]->element_type())) {
      continue;
    }
    throw hlo::Error(hlo::ErrorCode::kInternal, operation.kind().name + " gives another result " +
                                                    "than was recorded, " + shapes[i]->ToString());
  }
}

// The values of a graph's nodes, each as long as a node needs it.
class GraphValues {
 public:
  // One of the graph's results, by its number.
  struct Result {
    size_t number;
    at::Tensor tensor;
  };

  explicit GraphValues(const lazy::Graph& graph) {
    first_.reserve(graph.nodes().size());
    size_t count = 0;
    for (const lazy::Node* node : graph.nodes()) {
      first_.push_back(count);
      count += node->role() == lazy::Node::Role::kOperation
                   ? node->operation()->result_shapes().size()
                   : 1;
    }
    values_.resize(count);
    leaves_.reserve(graph.nodes().size() - graph.operation_count());
    finished_.reserve(graph.results().size());
    for (const lazy::Node* node : graph.nodes()) {
      for (const lazy::Value& operand : node->operands()) ++Of(operand).uses;
    }
    for (size_t i = 0; i < graph.results().size(); ++i) Of(graph.results()[i]).results.push_back(i);
  }

  // Memory of others, which no operation is to find its own.
  void SetLeaf(const lazy::Node* node, at::Tensor tensor) {
    leaves_.push_back(tensor);
    Set(node, 0, std::move(tensor));
  }
  // One that nobody needs is let go at once: a statistic that only a backward would read.
  void Set(const lazy::Node* node, size_t index, at::Tensor tensor) {
    GraphValue& value = values_[first_[node->position] + index];
    value.tensor = std::move(tensor);
    if (value.uses == 0) Finish(value);
  }

  // Adds the node's operands; what is needed no more is theirs alone.
  void TakeOperands(const lazy::Node* node, std::vector<at::Tensor>& operands) {
    for (const lazy::Value& operand : node->operands()) operands.push_back(Take(operand));
  }

  // Hands over the results that no operation needs any more, each once.
  template <typename F>
  void TakeFinished(F&& take) {
    for (Result& result : finished_) take(std::move(result));
    finished_.clear();
  }

 private:
  struct GraphValue {
    at::Tensor tensor;
    uint32_t uses = 0;            // by operations, still to come
    std::vector<size_t> results;  // the numbers of those that it is
  };

  at::Tensor Take(const lazy::Value& taken) {
    GraphValue& value = Of(taken);
    if (--value.uses > 0) return value.tensor;
    at::Tensor tensor = value.tensor;
    Finish(value);
    return tensor;
  }

  void Finish(GraphValue& value) {
    for (size_t number : value.results) finished_.push_back({number, value.tensor});
    value.tensor = at::Tensor();
  }

  GraphValue& Of(const lazy::Value& value) {
    return values_[first_[value.node->position] + value.index];
  }

  std::vector<size_t> first_;  // of each node's values, by position
  std::vector<GraphValue> values_;
  std::vector<Result> finished_;
  std::vector<at::Tensor> leaves_;
};

// One node, with what it needs that is not computed: an operation of eager mode.
class NodeRun {
 public:
  std::vector<lazy::Reference<lazy::Data>> Results(lazy::Device* device, lazy::Node* node) {
    const std::vector<at::Tensor>& tensors = TensorsOf(node);
    std::vector<lazy::Reference<lazy::Data>> results;
    const auto shapes = node->operation()->result_shapes();
    for (size_t i = 0; i < shapes.size(); ++i) {
      results.push_back(shapes[i] ? DataOf(device, shapes[i], tensors[i]) : nullptr);
    }
    return results;
  }

 private:
  at::Tensor OperandOf(const lazy::Value& value) {
    lazy::Node* node = value.node.get();
    switch (node->role()) {
      case lazy::Node::Role::kData:
        return TensorOf(*node->data());
      case lazy::Node::Role::kScalar:
      case lazy::Node::Role::kIndex:
        return numbers_.emplace_back(TensorOfNumber(node));
      case lazy::Node::Role::kOperation:
        break;
    }
    if (const lazy::Value* data = node->computed(value.index)) return OperandOf(*data);
    return TensorsOf(node).at(value.index);
  }

  const std::vector<at::Tensor>& TensorsOf(lazy::Node* node) {
    for (const auto& [known, tensors] : computed_) {
      if (known == node) return tensors;
    }
    const lazy::Operation& operation = *node->operation();
    std::vector<at::Tensor> operands;
    operands.reserve(node->operands().size());
    for (const lazy::Value& operand : node->operands()) operands.push_back(OperandOf(operand));
    std::vector<at::Tensor> tensors = operation.kind().eager_form->Run(operation, operands);
    CheckShapes(operation, tensors);
    return computed_.emplace_back(node, std::move(tensors)).second;
  }

  std::deque<std::pair<const lazy::Node*, std::vector<at::Tensor>>> computed_;
  std::vector<at::Tensor> numbers_;  // whose memory no operation is to find its own
};

// One run of a graph.
class GraphRun {
 public:
  GraphRun(lazy::Device* device, const lazy::Graph& graph)
      : device_(device), graph_(graph), values_(graph) {}

  std::vector<lazy::Reference<lazy::Data>> Results() {
    results_.resize(graph_.results().size());
    SetData();
    for (lazy::Node* node : graph_.nodes()) {
      Run(node);
      KeepFinished();
    }
    return std::move(results_);
  }

 private:
  void SetData() {
    static lazy::Metric* time = lazy::Metric::Get("UnwrapXlaData");
    const lazy::TimedSection timed(time);
    for (lazy::Node* leaf : graph_.data_leaves()) {
      values_.SetLeaf(leaf, TensorOf(*leaf->data()));
    }
  }

  void Run(lazy::Node* node) {
    switch (node->role()) {
      case lazy::Node::Role::kData:
        return;
      case lazy::Node::Role::kScalar:
      case lazy::Node::Role::kIndex:
        return values_.SetLeaf(node, numbers_.Of(node));
      case lazy::Node::Role::kOperation:
        return SetResults(node, Computed(node));
    }
  }

  std::vector<at::Tensor> Computed(const lazy::Node* node) {
    const lazy::Operation& operation = *node->operation();
    values_.TakeOperands(node, operands_);
    std::vector<at::Tensor> tensors = operation.kind().eager_form->Run(operation, operands_);
    operands_.clear();
    CheckShapes(operation, tensors);
    return tensors;
  }

  void SetResults(const lazy::Node* node, std::vector<at::Tensor> tensors) {
    const auto shapes = node->operation()->result_shapes();
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (shapes[i] != nullptr) values_.Set(node, i, std::move(tensors[i]));
    }
  }

  // At once: the new values of a model's parameters would else be there twice at the end.
  void KeepFinished() {
    values_.TakeFinished([&](GraphValues::Result result) {
      results_[result.number] =
          DataOf(device_, graph_.results()[result.number].shape_ref(), std::move(result.tensor));
    });
  }

  lazy::Device* const device_;
  const lazy::Graph& graph_;
  NumberTensors numbers_;
  GraphValues values_;
  std::vector<at::Tensor> operands_;  // of the node that runs
  std::vector<lazy::Reference<lazy::Data>> results_;
};

class GraphInterpreter final : public lazy::Interpreter {
 public:
  using Results = std::vector<lazy::Reference<lazy::Data>>;

  Results Run(lazy::Device* device, const lazy::Graph& graph, Threads threads) override {
    Results results;
    if (threads == Threads::kOne || !OnAnotherThread([&] { results = RunHere(device, graph); })) {
      const OneThread one_thread;
      results = RunHere(device, graph);
    }
    return results;
  }

  Results RunNode(lazy::Device* device, lazy::Node* node) override {
    const PlainKernels scope;
    const OneThread one_thread;
    return NodeRun().Results(device, node);
  }

 private:
  static Results RunHere(lazy::Device* device, const lazy::Graph& graph) {
    const PlainKernels scope;
    return GraphRun(device, graph).Results();
  }
};

[[maybe_unused]] const bool is_set = [] {
  lazy::SetInterpreter(new GraphInterpreter);
  return true;
}();

}  // namespace
}  // namespace torch_xla
