// What chose a kernel's code: with it, composites of other sizes find the code that emission would
// come to for them, without emitting it.
//
// Code has the structure of its composite in it and the numbers that do not vary; of those that do,
// only which are one size, and how the comparisons of them came out that emission made
// (emit/extent.h). So where structure, numbers and sizes are the same (RecipeKey), and each
// comparison comes out the same, the code serves. This holds of the operations alone whose emission
// is written so.
//
// Emission knows sizes by their values. Where two sizes are equal by chance, or one has the value
// of a number that does not vary, it would take them for one, and come to other code. The code that
// was made where they were not equal serves there, too: beside comparisons by name, emission asks
// of unequal numbers only whether it may do less, of a dimension that is not cut for example.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cpu/emit/extent.h"
#include "cpu/emit/kernel_emitter.h"
#include "cpu/kernel_signature.h"
#include "cpu/varying_sizes.h"

namespace cpu {

struct RecipeKey {
  std::string text;
  std::vector<int64_t> sizes;  // that vary, as they come first in the signature
  // No two of them are equal, and none is a number that does not vary: emission tells them apart.
  bool is_told_by_values = true;
};

RecipeKey RecipeKeyOf(const KernelSignature& signature, const VaryingNumbers& varying);

class KernelCode;

// Immutable.
class KernelRecipe {
 public:
  // Of code that was emitted for the sizes of a key, which are told by their values. None if
  // emission may have looked at sizes in other ways than by named comparisons.
  static std::shared_ptr<const KernelRecipe> Of(const hlo::Instruction& composite,
                                                const KernelSizes& emitted,
                                                std::vector<int64_t> sizes,
                                                const std::shared_ptr<const KernelCode>& code);

  // The kernel of a composite of the same key that has these sizes; none if its code differs.
  std::optional<KernelInfo> For(std::span<const int64_t> sizes) const;
  // Null if nobody has it any more.
  std::shared_ptr<const KernelCode> code() const { return code_.lock(); }
  int64_t bytes() const;

 private:
  KernelRecipe(const KernelSizes& emitted, std::vector<int64_t> sizes,
               const std::shared_ptr<const KernelCode>& code);

  // A number of the recipe, with other sizes.
  int64_t ValueOf(const Extent& number, std::span<const int64_t> sizes) const;
  int64_t ValueOf(const Formula& formula, std::span<const int64_t> sizes) const;
  bool ComesOutTheSame(const Decision& decision, std::span<const int64_t> sizes) const;

  const std::vector<int64_t> sizes_;  // for which it was emitted
  const std::vector<Decision> decisions_;
  const std::vector<Extent> slots_;
  const KernelWork work_;
  const std::weak_ptr<const KernelCode> code_;
};

}  // namespace cpu
