#include "aten/evaluated_form.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "aten/dtype.h"
#include "aten/eager_form.h"
#include "aten/lowering.h"
#include "hlo/prepared_evaluation.h"
#include "lazy/value_check.h"
#include "process/fork.h"

namespace torch_xla {
namespace {

hlo::Literal ToLiteral(const hlo::Shape& shape, const at::Tensor& tensor) {
  return hlo::Literal(shape, tensor.contiguous().const_data_ptr());
}

at::Tensor ToTensor(const hlo::Literal& literal) {
  const hlo::Shape& shape = literal.shape();
  at::Tensor tensor = at::empty(shape.dimensions(), ToScalarType(shape.element_type()));
  if (tensor.nbytes() > 0) std::memcpy(tensor.mutable_data_ptr(), literal.bytes(), tensor.nbytes());
  return tensor;
}

// The lowering of one operation, ready to be evaluated; its last result are the checks' numbers, if
// there are any.
class LoweredOperation {
 public:
  explicit LoweredOperation(const lazy::Operation& operation)
      : module_("evaluated"), evaluation_(Lower(operation)) {}

  std::vector<hlo::Literal> Run(std::span<const hlo::Literal> arguments) const {
    std::vector<hlo::Literal> results = evaluation_.Run(arguments);
    if (checks_.empty()) return results;
    const auto numbers = results.back().data<uint64_t>();
    for (size_t i = 0; i < checks_.size(); ++i) {
      if (const auto error = lazy::FailureOf(checks_[i], numbers[i])) throw hlo::Error(*error);
    }
    results.pop_back();
    return results;
  }

 private:
  const hlo::Computation& Lower(const lazy::Operation& operation) {
    hlo::Computation* main = module_.AddComputation("main");
    module_.set_entry(main);
    Builder builder(main);
    Values parameters;
    for (lazy::ShapeRef shape : operation.operand_shapes()) {
      parameters.push_back(builder.Parameter(*shape));
    }
    const lazy::CheckRecorder recorder(main, &checks_);
    Values values = operation.Lower(builder, parameters);
    if (Value numbers = recorder.Numbers(builder)) values.push_back(numbers);
    main->set_results(values);
    main->RemoveDeadInstructions();
    return *main;
  }

  hlo::Module module_;
  lazy::ValueChecks checks_;
  const hlo::PreparedEvaluation evaluation_;
};

// Of operations on few numbers, which take less time to evaluate than to lower.
class LoweredOperations {
 public:
  using Lowered = std::shared_ptr<const LoweredOperation>;

  static LoweredOperations& Get() {
    static auto* operations = new LoweredOperations;
    return *operations;
  }

  Lowered Of(const lazy::Operation& operation) {
    if (!IsKept(operation)) return std::make_shared<const LoweredOperation>(operation);
    {
      const std::lock_guard lock(mutex_);
      const auto found = kept_.find(operation.number());
      if (found != kept_.end()) return found->second;
    }
    const auto lowered = std::make_shared<const LoweredOperation>(operation);
    const std::lock_guard lock(mutex_);
    if (kept_.size() >= kMost) kept_.clear();
    kept_.emplace(operation.number(), lowered);
    return lowered;
  }

 private:
  static constexpr size_t kMost = 256;
  static constexpr int64_t kMostBytes = 4096;  // of each of some dozens of constants

  // One whose shapes are being inferred has no number yet.
  static bool IsKept(const lazy::Operation& operation) {
    if (operation.number() == 0) return false;
    for (lazy::ShapeRef shape : operation.result_shapes()) {
      if (shape != nullptr && shape->byte_size() > kMostBytes) return false;
    }
    return true;
  }

  process::Mutex mutex_;
  std::unordered_map<uint64_t, Lowered> kept_;  // by the operation's number
};

class Evaluated final : public lazy::EagerForm {
 public:
  std::vector<at::Tensor> Run(const lazy::Operation& operation,
                              std::span<const at::Tensor> operands) const override {
    std::vector<hlo::Literal> arguments;
    for (size_t i = 0; i < operands.size(); ++i) {
      arguments.push_back(ToLiteral(*operation.operand_shapes()[i], operands[i]));
    }
    std::vector<at::Tensor> results;
    for (const hlo::Literal& result : LoweredOperations::Get().Of(operation)->Run(arguments)) {
      results.push_back(ToTensor(result));
    }
    return results;
  }
};

}  // namespace

void RunByEvaluator(lazy::OperationKind& kind) {
  if (kind.eager_form == nullptr) kind.eager_form = new Evaluated;  // kinds live for ever
}

}  // namespace torch_xla
