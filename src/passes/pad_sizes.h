// One program for many sizes, for engines whose programs have fixed ones: dimensions are padded,
// and the true sizes are arguments.
//
// In the padded program each value holds, at the indices that the true sizes allow, what the
// program computes; what else it holds may be anything, NaN too. So element-wise operations stay as
// they are, and whatever joins elements of a padded dimension masks it with the neutral element:
// both operands of a product, what a reduction or a window takes. Indices are kept within the true
// sizes, and updates that do not exist go nowhere. An operation for which this is not known to hold
// is refused.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hlo/error.h"
#include "hlo/literal.h"
#include "hlo/module.h"
#include "passes/padded_box.h"

namespace passes {

// What differs among programs of one structure, by the place of an instruction in the entry.
struct VaryingParts {
  std::vector<std::vector<bool>> dimensions;  // of arrays
  // Constants become arguments; so do the starts of slices, and how far padding moves.
  std::vector<bool> attributes;
};

struct PaddedProgram {
  std::unique_ptr<hlo::Module> module;
  std::vector<PaddedBox> parameters, results;  // the program's own
  // The arguments behind them: true sizes and what else differs.
  std::vector<hlo::Literal> arguments;
};

// Of an operation: what and where it is.
class PaddingRefused : public hlo::Error {
 public:
  PaddingRefused(const hlo::Instruction& instruction, const std::string& why);
  const hlo::Metadata& metadata() const { return metadata_; }

 private:
  hlo::Metadata metadata_;
};

// `padded` gives the size for a size, at least as large. The module has no calls, and no composites
// of varying sizes. Aliases of what is padded are dropped. Throws PaddingRefused.
PaddedProgram PadSizes(const hlo::Module& module, const VaryingParts& parts,
                       const std::function<int64_t(int64_t)>& padded);

}  // namespace passes
