// Elements repeated as often as a tensor says.
#include <cstdint>
#include <limits>
#include <optional>

#include "aten/host_kernel.h"
#include "aten/op.h"
#include "aten/reduction.h"
#include "aten/sort.h"
#include "aten/value_check.h"
#include "lazy/cut_reason.h"

namespace torch_xla {
namespace {

Value Total(Builder& b, Value x) { return Sum(b, b.Convert(x, ElementType::kS64), {0}); }

// Which element each of `size` results repeats: as many elements end at or before it.
Value RepeatedPositions(Builder& b, Value repeats, int64_t size) {
  ElementType type = repeats->element_type();
  if (ChecksValues(b)) {
    CheckBounds(b, Total(b, repeats), {size, size + 1},
                {kRuntimeError, "allocated size does not match required size"});
  }
  CheckBounds(b, repeats, {0, std::numeric_limits<int64_t>::max()},
              {kRuntimeError, "repeats can not be negative"});
  Value ends = CumulativeSum(b, b.Convert(repeats, ElementType::kS64), 0);
  return b.Convert(CountBelow(b, ends, Iota(b, {size}, 0), true), type);
}

// How long the result is has to be known here, which computes what is pending.
at::Tensor RepeatInterleave(const at::Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TORCH_CHECK(repeats.scalar_type() == at::kLong || repeats.scalar_type() == at::kInt,
              "repeats has to be Long or Int tensor");
  if (repeats.numel() == 0) return at::empty_like(repeats);
  if (!output_size) {
    const lazy::CutScope scope(lazy::CutReason::Kind::kRead, "aten::repeat_interleave");
    if (LiesOnHost(repeats)) {
      return ByHostKernel(repeats, [](const at::Tensor& x) { return at::repeat_interleave(x); });
    }
    TORCH_CHECK(repeats.min().item<int64_t>() >= 0, "repeats can not be negative");
    output_size = Record<&Total>(repeats).item<int64_t>();
  }
  return Record<&RepeatedPositions>(repeats, *output_size);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&Total>(+[](const at::Tensor& x) { return at::sum(x, at::kLong); });
  RunBy<&RepeatedPositions>(+[](const at::Tensor& repeats, int64_t size) {
    // torch's kernel has written beyond its result when it meets a negative number.
    TORCH_CHECK(repeats.min().item<int64_t>() >= 0, "repeats can not be negative");
    return at::repeat_interleave(repeats, std::optional<int64_t>(size));
  });
  m.impl("repeat_interleave.Tensor", &RepeatInterleave);
}

}  // namespace torch_xla
