// What chose a kernel's code: with it, composites of other sizes find the code that emission would
// come to for them, without emitting it.
//
// Code has the structure of its composite in it and the numbers that do not vary; of those that do,
// only which are equal, and how the comparisons of them came out that emission made
// (emit/extent.h). So where structure, numbers and equalities are the same (RecipeKey), and each
// comparison comes out the same, the code is the same. This holds of the operations alone whose
// emission is written so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cpu/emit/extent.h"
#include "cpu/emit/kernel_emitter.h"
#include "cpu/kernel_signature.h"

namespace cpu {

struct RecipeKey {
  std::string text;
  std::vector<int64_t> sizes;  // that vary, as they come first in the signature
};

RecipeKey RecipeKeyOf(const KernelSignature& signature, const std::set<int64_t>& varying);

class KernelCode;

// Immutable.
class KernelRecipe {
 public:
  // Of code that was emitted for the sizes of a key. None if emission may have looked at sizes in
  // other ways than by named comparisons.
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
