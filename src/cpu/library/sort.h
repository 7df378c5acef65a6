// The runtime half of `sort`: N arrays of one shape, sorted together along a dimension.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "cpu/thread_pool.h"
#include "hlo/module.h"

namespace cpu {

// The comparator: pointers to the 2N scalars (a0, b0, a1, b1, …); true if a goes before b. Called
// from several threads.
using SortComparator = std::function<bool(const void* const* scalars)>;

struct SortOperand {
  const void* input = nullptr;
  void* output = nullptr;  // dense, row-major like the input; may be the same buffer, or absent
  int64_t width = 0;       // bytes of an element: 1, 2, 4, 8 or 16
};

// A comparator that compares one operand's elements with < or >, recognised so that keys can be
// compared without a call.
struct SortOrder {
  int64_t operand = 0;
  hlo::ElementType type = hlo::ElementType::kF32;
  bool descending = false;
  // Floating point keys in IEEE 754 total order (−NaN < −inf < … < −0 < +0 < … < NaN). Otherwise a
  // NaN compares like `compare` says: false.
  bool total_order = false;
  bool zeros_and_nans_equal = false;  // as JAX canonicalises: −0 = +0, all NaNs equal and last
};

// nullopt if the computation is anything but one comparison of one operand's two scalars, or JAX's
// form of it for floats (total order after canonicalising zeros and NaNs).
std::optional<SortOrder> RecognizeSortOrder(const hlo::Computation& comparator);

// Sorts each line along `dimension`. Always stable, whatever is asked. `order`, when given,
// replaces the comparator, which may then be null. Parallel over lines, and within a line that is
// long.
void SortRows(ThreadPool& threads, const hlo::Dimensions& dimensions, int64_t dimension,
              std::span<const SortOperand> operands, const SortComparator& comparator,
              const std::optional<SortOrder>& order = std::nullopt);

}  // namespace cpu
