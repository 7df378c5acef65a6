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

// Of a kernel's signature, number by number: 0 for one that is a constant of the code. The others
// vary; those of equal entries are one size, which have been equal in each program so far. Sizes
// of different entries may be equal in one program, by chance. Empty where nothing varies.
using VaryingNumbers = std::vector<uint32_t>;

// Sizes above 1, and what no size is: constants made of one (an index's least one, -n).
bool MayVary(int64_t number);

// All that may, each value one size.
VaryingNumbers AllNumbers(const KernelSignature& signature);

// All that have the value of one that varies, each value one size.
VaryingNumbers OfEqualValues(const KernelSignature& signature, const VaryingNumbers& varying);

// Not thread-safe.
class VaryingSizes {
 public:
  // In bytes.
  explicit VaryingSizes(int64_t capacity) : programs_(capacity) {}

  // For each kernel of a program, in its order: what differs from programs before it, and among
  // kernels of one structure. `known` are sizes that others know to vary: they do wherever a
  // number is one of them, but where this one has been seen to vary at other places only. Nothing
  // varies of a kernel without a signature.
  std::vector<VaryingNumbers> Observe(const std::vector<std::optional<KernelSignature>>& kernels,
                                      const std::set<int64_t>& known = {});

 private:
  struct Program {
    std::vector<int64_t> numbers;   // of the first one
    std::vector<bool> varies;       // each of them
    std::vector<uint32_t> classes;  // of each kernel's numbers: equal ones were always equal
    int changes = 0;
  };

  static void Note(const std::vector<std::optional<KernelSignature>>& kernels,
                   const std::vector<int64_t>& numbers, Program& program);
  static std::vector<VaryingNumbers> VaryingOf(
      const std::vector<std::optional<KernelSignature>>& kernels,
      const std::vector<int64_t>& numbers, const Program& program, const std::set<int64_t>& known);

  RecentlyUsed<Program> programs_;  // by their structures' hash
};

}  // namespace cpu
