#include "cpu/sort.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace cpu {
namespace {

using hlo::Instruction;

struct SortPlan {
  int64_t length = 1, outer = 1, inner = 1;
  std::vector<int64_t> widths;
  KernelFunction comparator;
};

// Copies a strided row to dense memory or back.
void CopyRow(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride,
             int64_t count, int64_t width) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_stride, from + i * from_stride, width);
}

void SortRow(const SortPlan& plan, const NativeStep::Call& call, int64_t row) {
  const int64_t offset = row / plan.inner * plan.length * plan.inner + row % plan.inner;
  const size_t operands = plan.widths.size();
  std::vector<std::vector<std::byte>> dense(operands);
  for (size_t i = 0; i < operands; ++i) {
    const int64_t width = plan.widths[i];
    dense[i].resize(plan.length * width);
    CopyRow(static_cast<const std::byte*>(call.operands[i]) + offset * width, plan.inner * width,
            dense[i].data(), width, plan.length, width);
  }
  std::vector<int32_t> order(plan.length);
  std::iota(order.begin(), order.end(), 0);
  std::vector<void*> pointers(2 * operands + 1);
  bool answer = false;
  pointers.back() = &answer;
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    for (size_t i = 0; i < operands; ++i) {
      pointers[2 * i] = dense[i].data() + a * plan.widths[i];
      pointers[2 * i + 1] = dense[i].data() + b * plan.widths[i];
    }
    plan.comparator(pointers.data(), 0, 1);
    return answer;
  });
  for (size_t i = 0; i < operands; ++i) {
    const int64_t width = plan.widths[i];
    std::byte* to = static_cast<std::byte*>(call.results[i]) + offset * width;
    for (int64_t k = 0; k < plan.length; ++k) {
      std::memcpy(to + k * plan.inner * width, dense[i].data() + order[k] * width, width);
    }
  }
}

}  // namespace

NativeStep::Function BindSort(const Instruction& sort, KernelFunction comparator) {
  SortPlan plan;
  plan.comparator = comparator;
  const hlo::Dimensions& dimensions = sort.operand(0)->dimensions();
  const int64_t dimension = sort.as<hlo::SortAttributes>().dimension;
  for (int64_t d = 0; d < static_cast<int64_t>(dimensions.size()); ++d) {
    (d < dimension ? plan.outer : d == dimension ? plan.length : plan.inner) *= dimensions[d];
  }
  for (const Instruction* operand : sort.operands()) {
    plan.widths.push_back(static_cast<int64_t>(hlo::ByteWidth(operand->element_type())));
  }
  return [plan](const NativeStep::Call& call) {
    const int64_t rows = plan.outer * plan.inner;
    const int64_t chunks = std::clamp<int64_t>(rows * plan.length / 2048, 1, rows);
    call.state.threads.ParallelFor(chunks, [&](int64_t chunk) {
      for (int64_t row = chunk * rows / chunks; row < (chunk + 1) * rows / chunks; ++row) {
        SortRow(plan, call, row);
      }
    });
  };
}

}  // namespace cpu
