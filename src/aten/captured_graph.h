// CapturedGraph: what a function of tensors records, kept so that later calls of it record one node
// instead of running the function. `torch.compile(backend="openxla")` makes one of each graph that
// dynamo hands over.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "aten/captured_steps.h"
#include "lazy/device.h"
#include "lazy/node.h"
#include "lazy/storage.h"

namespace torch_xla {

class CapturedGraph {
 public:
  // Takes placeholders, which are tensors like the arguments without data: reading one throws.
  using Function = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

  // Calls the function once, in a capture of this thread (lazy/capture.h), and keeps what it
  // records from the placeholders to the outputs, and into placeholders that it writes to.
  // Arguments are xla tensors of one device. Throws what the function throws, and c10::Error for
  // what is not a function of the arguments alone: tensors of other devices, collectives,
  // generators; or shows them as only their places in memory tell.
  CapturedGraph(at::TensorList arguments, const Function& function);

  // Whether calls run as programs of their own, not together with what is around them: for reports,
  // and in eager mode always.
  static void SetRunApart(bool apart);

  // Starts what calls on any device have recorded: to whoever waits for the device a call of a
  // compiled function is under way. In a capture there is nothing to start.
  static void StartCalls();

  // Records a call; writes into the arguments what the function wrote into the placeholders.
  // Numbers are drawn anew. Nothing for arguments of other shapes or types. What earlier calls have
  // recorded is started first where a new step seems to begin, so that a program that never calls
  // `torch_xla.sync()` runs step by step.
  std::optional<std::vector<at::Tensor>> Call(at::TensorList arguments);

 private:
  // An output: an argument itself, a view of one, or a tensor over one of the new storages.
  struct Output {
    enum class Kind : uint8_t { kArgument, kViewOfArgument, kNew };
    Kind kind = Kind::kNew;
    size_t place = 0;  // of the argument, or of the storage among those that results make
    lazy::ViewChain chain;
    bool is_view = false;
    at::ScalarType type = at::kFloat;
    std::vector<int64_t> sizes, strides;
    int64_t offset = 0;
  };

  void MakePlaceholders(at::TensorList arguments);
  void Finish(const std::vector<at::Tensor>& outputs);
  Output DescribeOutput(const at::Tensor& output);
  size_t NewStorage(const lazy::Reference<lazy::Storage>& storage);
  // Whether the view that an output is of its placeholder can be one of this argument.
  bool IsSeen(const Output& output, const at::Tensor& argument) const;
  bool Takes(at::TensorList arguments) const;
  bool BeginsStep(at::TensorList arguments) const;
  static void EndStep(lazy::Device* device, const char* cause);
  // dynamo makes graphs of nothing, too.
  bool has_results() const { return !work_.steps.steps->results.empty(); }
  std::vector<at::Tensor> RecordCall(std::vector<lazy::Value> operands);
  void CountCall();
  void WriteArguments(at::TensorList arguments, const std::vector<at::Tensor>& results) const;
  std::vector<at::Tensor> MakeOutputs(at::TensorList arguments,
                                      const std::vector<at::Tensor>& results) const;
  static at::Tensor MakeOutput(const Output& output, const at::Tensor& whole);
  static at::Tensor ViewOfArgument(const Output& output, const at::Tensor& argument);

  lazy::Device* device_ = nullptr;
  std::vector<at::Tensor> placeholders_;                  // this and the next two: while capturing
  std::vector<lazy::Value> originals_;                    // their values before the function ran
  std::vector<lazy::Reference<lazy::Storage>> storages_;  // of the outputs
  std::vector<size_t> written_arguments_;
  std::vector<Output> outputs_;
  std::vector<hlo::Dimensions> memory_orders_;  // of the outputs' storages
  CapturedWork work_;                           // of the arguments
  std::vector<lazy::SharedShape> argument_shapes_;
  std::vector<std::vector<int64_t>> argument_strides_;
  std::vector<hlo::Dimensions> argument_orders_;  // of the placeholders' storages
  // Several threads may call one graph.
  std::atomic<int64_t> called_at_cut_ = -1, calls_since_cut_ = 0;
};

}  // namespace torch_xla
