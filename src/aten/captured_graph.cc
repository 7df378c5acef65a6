#include "aten/captured_graph.h"

#include <unordered_map>
#include <utility>

#include "aten/generator.h"
#include "aten/op.h"
#include "aten/tensor.h"
#include "lazy/capture.h"
#include "lazy/cut_reason.h"
#include "lazy/data.h"
#include "lazy/eager.h"
#include "lazy/graph.h"
#include "lazy/sync.h"
#include "lazy/sync_mutex.h"

namespace torch_xla {

// A place in the list of values: first the operands, then each step's results.
struct CapturedValue {
  uint32_t position = 0, index = 0;
  bool operator==(const CapturedValue&) const = default;
  uint64_t Hash() const { return hlo::CombineHash(position, index); }
};

struct CapturedStep {
  lazy::OperationReference operation;
  std::vector<CapturedValue> operands;
  // Operations are interned.
  bool operator==(const CapturedStep& other) const {
    return operation.get() == other.operation.get() && operands == other.operands;
  }
  uint64_t Hash() const {
    return hlo::CombineHash(operation->hash(), lazy::HashAttribute(operands));
  }
};

struct CapturedSteps {
  uint64_t hash = 0;  // of the rest
  size_t operand_count = 0;
  std::vector<CapturedStep> steps;
  std::vector<CapturedValue> results;
  bool operator==(const CapturedSteps&) const = default;
};

namespace {

// The attribute. Captures of one function for other indices are of equal steps, and so of one
// program: indices are operands.
struct StepsReference {
  std::shared_ptr<const CapturedSteps> steps;
  bool operator==(const StepsReference& other) const {
    return steps == other.steps || *steps == *other.steps;
  }
  uint64_t Hash() const { return steps->hash; }
};

uint64_t HashOf(const CapturedSteps& steps) {
  return hlo::CombineHash(hlo::CombineHash(steps.operand_count, lazy::HashAttribute(steps.steps)),
                          lazy::HashAttribute(steps.results));
}

// A constant as an operand of a call: each use of an index has a leaf of its own.
lazy::Value ForCall(const lazy::Value& constant) {
  if (constant.node->role() != lazy::Node::Role::kIndex) return constant;
  return {lazy::Node::MakeIndex(constant.node->index()), 0};
}

// Lowers the steps one by one.
Values CallGraph(Builder& b, Values operands, StepsReference reference) {
  const CapturedSteps& captured = *reference.steps;
  std::vector<Values> values;
  for (Value operand : operands) values.push_back({operand});
  auto value_at = [&](CapturedValue place) { return values[place.position][place.index]; };
  for (const CapturedStep& step : captured.steps) {
    Values inputs;
    for (CapturedValue place : step.operands) inputs.push_back(value_at(place));
    values.push_back(step.operation->Lower(b, inputs));
  }
  Values results;
  for (CapturedValue place : captured.results) results.push_back(value_at(place));
  return results;
}

// A tensor like `like` whose value is a leaf without data.
at::Tensor Placeholder(const at::Tensor& like) {
  TORCH_CHECK(IsXla(like) && !like.is_conj() && !like.is_neg(),
              "a captured graph takes plain tensors on xla, not one on ", like.device());
  XlaTensor impl = Impl(like);
  const lazy::SharedShape shape =
      lazy::InternShape(hlo::Shape(ToElementType(like.scalar_type()), like.sizes().vec()));
  lazy::Reference<lazy::Data> data(new lazy::Data(impl->xla_device(), shape.get(), nullptr));
  data->Drop();
  lazy::Value value{lazy::Node::MakeData(std::move(data), shape.get()), 0};
  auto storage = lazy::Storage::Make(impl->xla_device(), std::move(value));
  return at::detail::make_tensor<XlaTensorImpl>(std::move(storage), lazy::Reference<lazy::View>(),
                                                like.scalar_type(), like.sizes(), like.strides(),
                                                0);
}

constexpr const char* kExecuting = "dynamo is executing a compiled program";

std::atomic<bool> runs_apart{false};

// A step calls one graph at most so often, for instance of equal layers.
constexpr int64_t kCallsInStep = 64;

// Only the key of random numbers is a scalar with a dimension.
bool IsRandomKey(const lazy::Node& node) {
  return node.role() == lazy::Node::Role::kScalar && node.shape(0)->rank() == 1;
}

}  // namespace

CapturedGraph::CapturedGraph(at::TensorList arguments, const Function& function) {
  const lazy::CaptureScope scope;
  MakePlaceholders(arguments);
  const std::vector<at::Tensor> outputs = function(placeholders_);
  TORCH_CHECK(!scope.communicates(), "a captured graph takes part in no collectives");
  Finish(outputs);
}

void CapturedGraph::MakePlaceholders(at::TensorList arguments) {
  TORCH_CHECK(!arguments.empty(), "a captured graph has at least one tensor as argument");
  for (const at::Tensor& argument : arguments) {
    placeholders_.push_back(Placeholder(argument));
    lazy::Device* device = Impl(argument)->xla_device();
    TORCH_CHECK(device_ == nullptr || device == device_,
                "the arguments of a captured graph are on one device, and not on xla:",
                device_->ordinal(), " and xla:", device->ordinal());
    device_ = device;
    originals_.push_back(ReadValue(placeholders_.back()));
    argument_shapes_.emplace_back(originals_.back().shape_ref());
    argument_strides_.push_back(argument.strides().vec());
  }
}

CapturedGraph::Output CapturedGraph::DescribeOutput(const at::Tensor& output) {
  Output described;
  for (size_t i = 0; i < placeholders_.size(); ++i) {
    if (output.is_same(placeholders_[i])) described.argument = i;
  }
  if (described.argument) return described;
  TORCH_CHECK(IsXla(output) && !output.is_conj() && !output.is_neg(),
              "a result of a captured graph is a plain tensor on xla, not one on ",
              output.device());
  XlaTensor impl = Impl(output);
  const auto& storage = impl->xla_storage();
  for (const at::Tensor& placeholder : placeholders_) {
    TORCH_CHECK(storage != Impl(placeholder)->xla_storage(),
                "a result of a captured graph is a view of an argument");
  }
  while (described.storage < storages_.size() && storages_[described.storage] != storage) {
    ++described.storage;
  }
  if (described.storage == storages_.size()) storages_.push_back(storage);
  described.is_view = static_cast<bool>(impl->view());
  if (described.is_view) described.chain = impl->view()->chain();
  described.type = output.scalar_type();
  described.sizes = output.sizes().vec();
  described.strides = output.strides().vec();
  described.offset = output.storage_offset();
  return described;
}

void CapturedGraph::Finish(const std::vector<at::Tensor>& outputs) {
  for (const at::Tensor& output : outputs) outputs_.push_back(DescribeOutput(output));
  std::vector<lazy::Value> roots;
  for (const auto& storage : storages_) roots.push_back(storage->value());
  for (size_t i = 0; i < placeholders_.size(); ++i) {
    lazy::Value value = ReadValue(placeholders_[i]);
    if (value == originals_[i]) continue;
    written_arguments_.push_back(i);
    roots.push_back(std::move(value));
  }
  Keep(roots);
  storage_count_ = storages_.size();
  storages_.clear();
  placeholders_.clear();
  originals_.clear();
}

void CapturedGraph::Keep(const std::vector<lazy::Value>& roots) {
  std::lock_guard lock(lazy::SyncMutex());
  lazy::Graph graph(roots);
  std::unordered_map<const lazy::Node*, uint32_t> position;
  for (uint32_t i = 0; i < originals_.size(); ++i) position[originals_[i].node.get()] = i;
  auto count = static_cast<uint32_t>(originals_.size());
  for (lazy::Node* node : graph.nodes()) {
    if (node->role() == lazy::Node::Role::kOperation || position.contains(node)) continue;
    position[node] = count++;
    constants_.push_back(IsRandomKey(*node) ? lazy::Value()
                                            : lazy::Value{lazy::Reference<lazy::Node>(node), 0});
  }
  auto steps = std::make_shared<CapturedSteps>();
  steps->operand_count = count;
  auto place = [&](const lazy::Value& value) {
    return CapturedValue{position.at(value.node.get()), value.index};
  };
  for (const lazy::Node* node : graph.nodes()) {
    if (node->role() != lazy::Node::Role::kOperation) continue;
    CapturedStep step{lazy::OperationReference(node->operation()), {}};
    for (const lazy::Value& operand : node->operands()) step.operands.push_back(place(operand));
    position[node] = count++;
    steps->steps.push_back(std::move(step));
  }
  for (const lazy::Value& root : roots) steps->results.push_back(place(root));
  steps->hash = HashOf(*steps);
  steps_ = std::move(steps);
}

// Of a graph that was called since the last cut: a parameter has been updated, or nothing that it
// takes is left to compute, as of the next batch. Else it is one of several calls in a step.
bool CapturedGraph::BeginsStep(at::TensorList arguments) const {
  if (called_at_cut_ != lazy::CutCount(device_)) return false;
  if (calls_since_cut_ >= kCallsInStep) return true;
  bool all_computed = true;
  for (const at::Tensor& argument : arguments) {
    const auto& storage = Impl(argument)->xla_storage();
    bool is_pending = storage->value().node->role() == lazy::Node::Role::kOperation;
    if (is_pending && storage->replaced_data() != 0) return true;
    all_computed = all_computed && !is_pending;
  }
  return all_computed;
}

void CapturedGraph::SetRunApart(bool apart) { runs_apart = apart; }

void CapturedGraph::EndStep(const char* cause) const {
  const lazy::CutScope scope(lazy::CutReason::Kind::kCaller, cause);
  try {
    lazy::Sync(device_);
  } catch (const hlo::Error& error) {
    RethrowAsTorchError(error, "");
  }
}

at::Tensor CapturedGraph::MakeOutput(const Output& output, const at::Tensor& whole) const {
  lazy::Reference<lazy::View> view;
  if (output.is_view) {
    view = lazy::Reference<lazy::View>(new lazy::View(Impl(whole)->xla_storage(), output.chain));
  }
  return MakeView(whole, std::move(view), output.type, output.sizes, output.strides, output.offset);
}

std::optional<std::vector<at::Tensor>> CapturedGraph::Call(at::TensorList arguments) {
  if (arguments.size() != argument_shapes_.size()) return std::nullopt;
  for (const at::Tensor& argument : arguments) {
    if (!IsXla(argument) || Impl(argument)->xla_device() != device_) return std::nullopt;
  }
  const bool is_apart = runs_apart || lazy::RunsAsCalled();
  const lazy::RecordOnly one_graph;
  if (is_apart) {
    EndStep("torch_xla.sync when dynamo processing input graphs");
  } else if (BeginsStep(arguments)) {
    EndStep(kExecuting);
  }
  std::vector<lazy::Value> operands;
  for (size_t i = 0; i < arguments.size(); ++i) {
    operands.push_back(ReadValue(arguments[i]));
    if (operands.back().shape_ref() != argument_shapes_[i].get() ||
        arguments[i].strides() != argument_strides_[i]) {
      return std::nullopt;
    }
  }
  for (const lazy::Value& constant : constants_) {
    operands.push_back(constant.node ? ForCall(constant)
                                     : RandomState(std::nullopt, ToTorchDevice(device_)));
  }
  std::vector<at::Tensor> results;
  if (!steps_->results.empty()) {
    results = RecordOn<&CallGraph>(ToTorchDevice(device_), operands, StepsReference{steps_});
  }
  int64_t cut = lazy::CutCount(device_);
  calls_since_cut_ = called_at_cut_.exchange(cut) == cut ? calls_since_cut_ + 1 : 1;
  for (size_t i = 0; i < written_arguments_.size(); ++i) {
    const at::Tensor& argument = arguments[written_arguments_[i]];
    WriteInto(argument, results[storage_count_ + i]);
    argument.unsafeGetTensorImpl()->bump_version();
  }
  std::vector<at::Tensor> outputs;
  for (const Output& output : outputs_) {
    outputs.push_back(output.argument ? arguments[*output.argument]
                                      : MakeOutput(output, results[output.storage]));
  }
  if (is_apart) EndStep(kExecuting);
  return outputs;
}

}  // namespace torch_xla
