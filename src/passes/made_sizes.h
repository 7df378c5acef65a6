// Which of a program's sizes come from no parameter, but from a broadcast, a constant or the like:
// those may be numbers that were taken from a parameter's size when the program was recorded.
#pragma once

#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace passes {

// Of each dimension whether the program itself has made it; of what is no array, one flag.
using MadeDimensions = std::vector<bool>;

class MadeSizes {
 public:
  explicit MadeSizes(const hlo::Computation& computation);

  const MadeDimensions& Of(const hlo::Instruction* instruction) const {
    return of_.at(instruction);
  }

 private:
  MadeDimensions Find(const hlo::Instruction& instruction) const;
  MadeDimensions OfElementwise(const hlo::Instruction& instruction) const;
  MadeDimensions OfBroadcast(const hlo::Instruction& broadcast) const;
  MadeDimensions OfTranspose(const hlo::Instruction& transpose) const;
  MadeDimensions OfDot(const hlo::Instruction& instruction) const;
  // Of what is not looked into: made if anything that it takes is.
  MadeDimensions OfOther(const hlo::Instruction& instruction) const;

  std::unordered_map<const hlo::Instruction*, MadeDimensions> of_;
};

}  // namespace passes
