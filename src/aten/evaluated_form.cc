#include "aten/evaluated_form.h"

#include <cstring>

#include "aten/dtype.h"
#include "aten/eager_form.h"
#include "aten/lowering.h"
#include "hlo/evaluator.h"
#include "lazy/value_check.h"

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

class Evaluated final : public lazy::EagerForm {
 public:
  std::vector<at::Tensor> Run(const lazy::Operation& operation,
                              std::span<const at::Tensor> operands) const override {
    hlo::Module module("evaluated");
    hlo::Computation* main = module.AddComputation("main");
    module.set_entry(main);
    Builder builder(main);
    Values parameters;
    std::vector<hlo::Literal> arguments;
    for (size_t i = 0; i < operands.size(); ++i) {
      const hlo::Shape& shape = *operation.operand_shapes()[i];
      parameters.push_back(builder.Parameter(shape));
      arguments.push_back(ToLiteral(shape, operands[i]));
    }
    lazy::ValueChecks checks;
    const lazy::CheckRecorder recorder(main, &checks);
    Values values = operation.Lower(builder, parameters);
    if (Value numbers = recorder.Numbers(builder)) values.push_back(numbers);
    main->set_results(values);
    std::vector<hlo::Literal> literals = hlo::Evaluate(module, arguments);
    if (!checks.empty()) {
      const auto numbers = literals.back().data<uint64_t>();
      for (size_t i = 0; i < checks.size(); ++i) {
        if (const auto error = lazy::FailureOf(checks[i], numbers[i])) throw hlo::Error(*error);
      }
      literals.pop_back();
    }
    std::vector<at::Tensor> results;
    for (const hlo::Literal& result : literals) results.push_back(ToTensor(result));
    return results;
  }
};

}  // namespace

void RunByEvaluator(lazy::OperationKind& kind) {
  if (kind.eager_form == nullptr) kind.eager_form = new Evaluated;  // kinds live for ever
}

}  // namespace torch_xla
