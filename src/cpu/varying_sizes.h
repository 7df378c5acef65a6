// Which sizes of a program vary: where it differs from programs of the same structure before it,
// and where kernels of one structure that it has many of differ among themselves.
//
// Otherwise the first program of a structure gets kernels for its sizes alone. Later ones read the
// sizes that have been seen to differ from slots (emit/extent.h), so that a batch or a length that
// varies soon compiles no more, and a width that never does stays a constant. A loop that was
// recorded without its end, of steps that grow, compiles one kernel for all its turns. This only
// guesses what will pay: whether a kernel serves a program is decided by its code.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "cpu/kernel_signature.h"
#include "cpu/recently_used.h"

namespace cpu {

// Not thread-safe.
class VaryingSizes {
 public:
  // In bytes.
  explicit VaryingSizes(int64_t capacity) : programs_(capacity) {}

  // For each kernel of a program, in its order: the numbers above 1 of its signature that vary.
  // None of a kernel without a signature.
  std::vector<std::set<int64_t>> Observe(
      const std::vector<std::optional<KernelSignature>>& kernels);

 private:
  // What differs from programs before.
  std::vector<std::set<int64_t>> ObserveProgram(
      const std::vector<std::optional<KernelSignature>>& kernels);

  struct Program {
    std::vector<int64_t> numbers;  // of the first one
    std::vector<bool> varies;
    int changes = 0;
  };

  RecentlyUsed<Program> programs_;  // by their structures' hash
};

}  // namespace cpu
