// An operator that is refused is refused as in eager: with its exception and its words, which torch
// says itself when it gets zeros of the same shapes and types.
#include "lazy/refusal.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "aten/dtype.h"
#include "aten/eager_form.h"
#include "aten/plain_kernels.h"
#include "aten/refused_types.h"
#include "hlo/error.h"
#include "lazy/view.h"

namespace torch_xla {
namespace {

// What torch takes after all is computed: larger operands are not asked about.
constexpr int64_t kMostElements = int64_t{1} << 22;

// Of torch's kernels, those that say nothing about zeros: one whose lengths have to add up, and
// some that look at no shapes, and read beyond what they are given. What reads and writes views is
// ours: these were judged where they were made.
bool IsAsked(const lazy::OperationKind& kind) {
  static const auto* others = new std::unordered_set<std::string_view>{
      "aten::segment_reduce",
      "aten::embedding_bag",
      "aten::native_batch_norm",
      "aten::batch_norm_inference",
      "aten::batch_norm_backward_training",
      "aten::batch_norm_backward_evaluation",
  };
  const bool is_view =
      &kind == &lazy::Op<&lazy::ReadView>::kind() || &kind == &lazy::Op<&lazy::WriteView>::kind();
  return kind.eager_form != nullptr && !is_view && !others->contains(kind.name);
}

// What a refused call warns about, nobody did.
class Silence final : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

std::vector<at::Tensor> ZerosFor(const lazy::Operation& operation) {
  std::vector<at::Tensor> zeros;
  for (lazy::ShapeRef shape : operation.operand_shapes()) {
    zeros.push_back(at::zeros(shape->dimensions(), ToScalarType(shape->element_type())));
  }
  return zeros;
}

// Throws what torch throws for operands of these shapes and types.
void RunOnZeros(const lazy::Operation& operation) {
  if (!IsAsked(operation.kind())) return;
  int64_t elements = 0;
  for (lazy::ShapeRef shape : operation.operand_shapes()) elements += shape->num_elements();
  for (lazy::ShapeRef shape : operation.result_shapes()) {
    if (shape != nullptr) elements += shape->num_elements();
  }
  if (elements > kMostElements) return;
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  const PlainKernels scope;
  const OneThread one_thread;
  try {
    operation.kind().eager_form->Run(operation, ZerosFor(operation));
  } catch (const hlo::Error&) {
    // An evaluated form refuses as the lowering does.
  } catch (const c10::IndexError& error) {
    throw hlo::Error(hlo::ErrorCode::kOutOfRange, error.what_without_backtrace());
  }
}

class EagerRefusal final : public lazy::Refusal {
 public:
  void CheckTypes(const lazy::Operation& operation) const override {
    torch_xla::CheckTypes(operation);
  }

  // What becomes of nothing is each kernel's own answer: a result, or an error. That the CPU's
  // kernel lacks a type says nothing of ours, unless GPUs' lack it, too.
  void CheckEmpty(const lazy::Operation& operation) const override {
    const auto is_empty = [](lazy::ShapeRef shape) { return shape->num_elements() == 0; };
    if (std::ranges::none_of(operation.operand_shapes(), is_empty)) return;
    try {
      RunOnZeros(operation);
    } catch (const c10::NotImplementedError&) {
      if (RefusesTypes(operation)) throw;
    }
  }

  void Explain(const lazy::Operation& operation) const override { RunOnZeros(operation); }
};

[[maybe_unused]] const bool is_refusal_set = [] {
  lazy::SetRefusal(new EagerRefusal);
  return true;
}();

}  // namespace
}  // namespace torch_xla
