// CapturedGraph: what a function of tensors records, kept so that later calls of it record one node
// instead of running the function. `torch.compile(backend="openxla")` makes one of each graph that
// dynamo hands over.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "lazy/device.h"
#include "lazy/node.h"
#include "lazy/storage.h"

namespace torch_xla {

// The recorded operations, as one operation: captured_graph.cc.
struct CapturedSteps;

// A call goes:
//   CapturedGraph graph(arguments);
//   outputs = function(graph.placeholders());
//   graph.Finish(outputs);
//   results = graph.Call(arguments);   // as often as there are arguments
class CapturedGraph {
 public:
  // Arguments are xla tensors of one device. Throws c10::Error if a graph of them cannot be kept.
  explicit CapturedGraph(at::TensorList arguments);

  // Tensors like the arguments that have no data yet: reading one throws.
  const std::vector<at::Tensor>& placeholders() const { return placeholders_; }

  // Keeps what was recorded from the placeholders to the outputs, and into placeholders that were
  // written to. Throws c10::Error for what is not a function of the arguments alone, or shares
  // their memory: views of arguments, tensors of other devices, collectives.
  void Finish(const std::vector<at::Tensor>& outputs);

  // Records a call; writes into the arguments what the function wrote into the placeholders.
  // Numbers are drawn anew. Nothing for arguments of other shapes or types. What earlier calls have
  // recorded is started first where a new step seems to begin, so that a program that never calls
  // `torch_xla.sync()` runs step by step.
  std::optional<std::vector<at::Tensor>> Call(at::TensorList arguments);

 private:
  // An output: an argument itself, or a tensor over one of the new storages.
  struct Output {
    std::optional<size_t> argument;
    size_t storage = 0;  // of those that results make
    lazy::ViewChain chain;
    bool is_view = false;
    at::ScalarType type = at::kFloat;
    std::vector<int64_t> sizes, strides;
    int64_t offset = 0;
  };

  Output DescribeOutput(const at::Tensor& output);
  void Keep(const std::vector<lazy::Value>& roots);
  bool BeginsStep(at::TensorList arguments) const;
  void EndStep() const;
  at::Tensor MakeOutput(const Output& output, const at::Tensor& whole) const;

  lazy::Device* device_ = nullptr;
  size_t collectives_before_ = 0;
  std::vector<at::Tensor> placeholders_;
  std::vector<lazy::Value> originals_;  // the placeholders' values before the function ran
  std::vector<size_t> written_arguments_;
  std::vector<lazy::Reference<lazy::Storage>> storages_;  // of the outputs, while capturing
  std::vector<Output> outputs_;
  size_t storage_count_ = 0;
  std::shared_ptr<const CapturedSteps> steps_;
  // Operands after the arguments; null: a key of random numbers.
  std::vector<lazy::Value> constants_;
  std::vector<lazy::SharedShape> argument_shapes_;
  std::vector<std::vector<int64_t>> argument_strides_;
  // Several threads may call one graph.
  std::atomic<int64_t> called_at_cut_ = -1, calls_since_cut_ = 0;
};

}  // namespace torch_xla
