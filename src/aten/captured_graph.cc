#include "aten/captured_graph.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "aten/op.h"
#include "aten/placeholder.h"
#include "aten/tensor.h"
#include "lazy/capture.h"
#include "lazy/cut_reason.h"
#include "lazy/eager.h"
#include "lazy/metrics.h"
#include "lazy/settings.h"
#include "lazy/sync.h"
#include "process/fork.h"

namespace torch_xla {

namespace {

at::Tensor PlaceholderLike(const at::Tensor& like) {
  TORCH_CHECK(IsXla(like) && !like.is_conj() && !like.is_neg(),
              "a captured graph takes plain tensors on xla, not one on ", like.device());
  return Placeholder(Impl(like)->xla_device(), like.scalar_type(), like.sizes(), like.strides());
}

lazy::Metric* CallSizes(const char* name) {
  return lazy::Metric::Get(name, lazy::MetricUnit::kNumber);
}

constexpr const char* kExecuting = "dynamo is executing a compiled program";

std::atomic<bool> runs_apart{false};

// The devices on which calls were recorded, with the cut after which the last one was.
class CallsSinceCut {
 public:
  static CallsSinceCut& Get() {
    static auto* calls = new CallsSinceCut;
    return *calls;
  }

  void Note(lazy::Device* device, int64_t cut) {
    std::lock_guard lock(mutex_);
    last_[device] = cut;
  }
  // Those with calls that no cut has taken yet.
  std::vector<lazy::Device*> Pending() {
    std::unordered_map<lazy::Device*, int64_t> last;
    {
      std::lock_guard lock(mutex_);
      last = last_;
    }
    std::vector<lazy::Device*> pending;
    for (const auto& [device, cut] : last) {
      if (lazy::CutCount(device) == cut) pending.push_back(device);
    }
    return pending;
  }

 private:
  process::Mutex mutex_;
  std::unordered_map<lazy::Device*, int64_t> last_;
};

// A step calls one graph at most so often, for instance of equal layers.
constexpr int64_t kCallsInStep = 64;

}  // namespace

CapturedGraph::CapturedGraph(at::TensorList arguments, const Function& function) {
  const lazy::CaptureScope scope;
  MakePlaceholders(arguments);
  const std::vector<at::Tensor> outputs = function(placeholders_);
  TORCH_CHECK(!scope.communicates(), "a captured graph takes part in no collectives");
  Finish(outputs);
  for (const Output& output : outputs_) {
    TORCH_CHECK(output.kind != Output::Kind::kViewOfArgument ||
                    IsSeen(output, arguments[static_cast<int64_t>(output.place)]),
                "a result of a captured graph is a view of an argument's places in memory");
  }
}

void CapturedGraph::MakePlaceholders(at::TensorList arguments) {
  TORCH_CHECK(!arguments.empty(), "a captured graph has at least one tensor as argument");
  for (const at::Tensor& argument : arguments) {
    placeholders_.push_back(PlaceholderLike(argument));
    lazy::Device* device = Impl(argument)->xla_device();
    TORCH_CHECK(device_ == nullptr || device == device_,
                "the arguments of a captured graph are on one device, and not on xla:",
                device_->ordinal(), " and xla:", device->ordinal());
    device_ = device;
    originals_.push_back(ReadValue(placeholders_.back()));
    argument_shapes_.emplace_back(originals_.back().shape_ref());
    argument_strides_.push_back(argument.strides().vec());
    argument_orders_.push_back(Impl(placeholders_.back())->xla_storage()->memory_order());
  }
}

size_t CapturedGraph::NewStorage(const lazy::Reference<lazy::Storage>& storage) {
  const auto found = std::ranges::find(storages_, storage);
  const auto place = static_cast<size_t>(found - storages_.begin());
  if (found == storages_.end()) storages_.push_back(storage);
  return place;
}

CapturedGraph::Output CapturedGraph::DescribeOutput(const at::Tensor& output) {
  Output described;
  for (size_t i = 0; i < placeholders_.size(); ++i) {
    if (output.is_same(placeholders_[i])) return {.kind = Output::Kind::kArgument, .place = i};
  }
  TORCH_CHECK(IsXla(output) && !output.is_conj() && !output.is_neg(),
              "a result of a captured graph is a plain tensor on xla, not one on ",
              output.device());
  XlaTensor impl = Impl(output);
  const auto shown = std::ranges::find_if(placeholders_, [&](const at::Tensor& placeholder) {
    return Impl(placeholder)->xla_storage() == impl->xla_storage();
  });
  if (shown != placeholders_.end()) {
    described.kind = Output::Kind::kViewOfArgument;
    described.place = static_cast<size_t>(shown - placeholders_.begin());
  } else {
    described.place = NewStorage(impl->xla_storage());
  }
  described.is_view = static_cast<bool>(impl->view());
  if (described.is_view) described.chain = impl->view()->chain();
  described.type = output.scalar_type();
  described.sizes = output.sizes().vec();
  described.strides = output.strides().vec();
  described.offset = output.storage_offset();
  return described;
}

// An as_strided view names places in a storage's memory. The placeholder has a storage whole, and
// so must the argument, in the same order.
bool CapturedGraph::IsSeen(const Output& output, const at::Tensor& argument) const {
  if (output.type != argument.scalar_type()) return false;
  const bool shows_places = std::ranges::any_of(output.chain, [](const lazy::ViewStep& step) {
    return step.kind == lazy::ViewStep::Kind::kAsStrided;
  });
  const XlaTensor impl = Impl(argument);
  return !shows_places ||
         (!impl->view() && impl->xla_storage()->memory_order() == argument_orders_[output.place]);
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
  work_ = KeepWork(originals_, roots);
  for (const auto& storage : storages_) memory_orders_.push_back(storage->memory_order());
  storages_.clear();
  placeholders_.clear();
  originals_.clear();
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

void CapturedGraph::StartCalls() {
  if (lazy::CaptureScope::Current() != nullptr || !lazy::AllowExecution()) return;
  for (lazy::Device* device : CallsSinceCut::Get().Pending()) EndStep(device, kExecuting);
}

void CapturedGraph::EndStep(lazy::Device* device, const char* cause) {
  const lazy::CutScope scope(lazy::CutReason::Kind::kCaller, cause);
  try {
    lazy::Sync(device);
  } catch (const hlo::Error& error) {
    RethrowAsTorchError(error, "");
  }
}

at::Tensor CapturedGraph::MakeOutput(const Output& output, const at::Tensor& whole) {
  lazy::Reference<lazy::View> view;
  if (output.is_view) {
    view = lazy::Reference<lazy::View>(new lazy::View(Impl(whole)->xla_storage(), output.chain));
  }
  return MakeView(whole, std::move(view), output.type, output.sizes, output.strides, output.offset);
}

// Such as a weight as the gradient's product takes it.
at::Tensor CapturedGraph::ViewOfArgument(const Output& output, const at::Tensor& argument) {
  const XlaTensor impl = Impl(argument);
  lazy::ViewChain chain;
  if (impl->view()) chain = impl->view()->chain();
  for (const lazy::ViewStep& step : output.chain) AppendStep(chain, step);
  lazy::Reference<lazy::View> view;
  if (!chain.empty()) {
    view = lazy::Reference<lazy::View>(new lazy::View(impl->xla_storage(), std::move(chain)));
  }
  at::Tensor made = MakeView(argument, std::move(view), output.type, output.sizes, output.strides,
                             argument.storage_offset() + output.offset);
  if (!argument.is_inference()) {
    const c10::VariableVersion& version = argument.unsafeGetTensorImpl()->version_counter();
    made.unsafeGetTensorImpl()->set_version_counter(version);
  }
  return made;
}

bool CapturedGraph::Takes(at::TensorList arguments) const {
  if (arguments.size() != argument_shapes_.size()) return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const at::Tensor& argument = arguments[i];
    if (!IsXla(argument) || Impl(argument)->xla_device() != device_ ||
        argument.strides() != argument_strides_[i]) {
      return false;
    }
  }
  return std::ranges::all_of(outputs_, [&](const Output& output) {
    return output.kind != Output::Kind::kViewOfArgument || IsSeen(output, arguments[output.place]);
  });
}

std::optional<std::vector<at::Tensor>> CapturedGraph::Call(at::TensorList arguments) {
  if (!Takes(arguments)) return std::nullopt;
  const bool is_apart = runs_apart || lazy::RunsAsCalled();
  const lazy::RecordOnly one_graph;
  if (is_apart) {
    EndStep(device_, "torch_xla.sync when dynamo processing input graphs");
  } else if (BeginsStep(arguments)) {
    EndStep(device_, kExecuting);
  }
  std::vector<lazy::Value> operands;
  for (size_t i = 0; i < arguments.size(); ++i) {
    operands.push_back(ReadValue(arguments[i]));
    if (operands.back().shape_ref() != argument_shapes_[i].get()) return std::nullopt;
  }
  const std::vector<at::Tensor> results = RecordCall(std::move(operands));
  CountCall();
  WriteArguments(arguments, results);
  std::vector<at::Tensor> outputs = MakeOutputs(arguments, results);
  if (is_apart) EndStep(device_, kExecuting);
  return outputs;
}

// `operands`: the arguments' values. Gives the outputs' storages, then what is written into
// arguments.
std::vector<at::Tensor> CapturedGraph::RecordCall(std::vector<lazy::Value> operands) {
  static lazy::Metric* inputs = CallSizes("RunCachedGraphInputData");
  if (!has_results()) return {};
  inputs->AddSample(static_cast<double>(operands.size()));
  for (lazy::Value& constant : work_.ConstantsForCall(device_)) {
    operands.push_back(std::move(constant));
  }
  std::vector<at::Tensor> results =
      RecordOn<&CallGraph>(ToTorchDevice(device_), operands, work_.steps);
  for (size_t i = 0; i < memory_orders_.size(); ++i) {
    Impl(results[i])->xla_storage()->set_memory_order(memory_orders_[i]);
  }
  return results;
}

void CapturedGraph::CountCall() {
  const int64_t cut = lazy::CutCount(device_);
  CallsSinceCut::Get().Note(device_, cut);
  calls_since_cut_ = called_at_cut_.exchange(cut) == cut ? calls_since_cut_ + 1 : 1;
}

void CapturedGraph::WriteArguments(at::TensorList arguments,
                                   const std::vector<at::Tensor>& results) const {
  for (size_t i = 0; i < written_arguments_.size(); ++i) {
    const at::Tensor& argument = arguments[written_arguments_[i]];
    WriteInto(argument, results[memory_orders_.size() + i]);
    argument.unsafeGetTensorImpl()->bump_version();
  }
}

std::vector<at::Tensor> CapturedGraph::MakeOutputs(at::TensorList arguments,
                                                   const std::vector<at::Tensor>& results) const {
  static lazy::Metric* made = CallSizes("RunCachedGraphOutputData");
  std::vector<at::Tensor> outputs;
  for (const Output& output : outputs_) {
    switch (output.kind) {
      case Output::Kind::kArgument:
        outputs.push_back(arguments[output.place]);
        break;
      case Output::Kind::kViewOfArgument:
        outputs.push_back(ViewOfArgument(output, arguments[output.place]));
        break;
      case Output::Kind::kNew:
        outputs.push_back(MakeOutput(output, results[output.place]));
    }
  }
  if (has_results()) made->AddSample(static_cast<double>(outputs.size()));
  return outputs;
}

}  // namespace torch_xla
