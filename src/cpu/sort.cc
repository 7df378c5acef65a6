#include "cpu/sort.h"

#include <vector>

#include "cpu/library/sort.h"

namespace cpu {
namespace {

SortComparator MakeComparator(size_t operands, KernelFunction kernel) {
  return [operands, kernel](const void* const* scalars) {
    constexpr size_t kInline = 15;
    bool answer = false;
    void* few[kInline + 1];
    std::vector<void*> many(2 * operands > kInline ? 2 * operands + 1 : 0);
    void** pointers = many.empty() ? few : many.data();
    for (size_t i = 0; i < 2 * operands; ++i) pointers[i] = const_cast<void*>(scalars[i]);
    pointers[2 * operands] = &answer;
    kernel(pointers, 0, 1);
    return answer;
  };
}

}  // namespace

NativeStep::Function BindSort(const hlo::Instruction& sort, std::vector<bool> is_read,
                              KernelFunction comparator) {
  const hlo::Dimensions dimensions = sort.operand(0)->dimensions();
  const int64_t dimension = sort.as<hlo::SortAttributes>().dimension;
  std::vector<int64_t> widths;
  for (const hlo::Instruction* operand : sort.operands()) {
    widths.push_back(static_cast<int64_t>(hlo::ByteWidth(operand->element_type())));
  }
  return
      [=, compare = MakeComparator(widths.size(), comparator),
       order = RecognizeSortOrder(*sort.called_computations()[0])](const NativeStep::Call& call) {
        std::vector<SortOperand> operands;
        for (size_t i = 0; i < widths.size(); ++i) {
          void* result = is_read[i] ? call.results[i] : nullptr;
          operands.push_back({call.operands[i], result, widths[i]});
        }
        SortRows(call.state.threads, dimensions, dimension, operands, compare, order);
      };
}

}  // namespace cpu
