// What a correct engine may answer. Rounding is the engine's own affair, so results are known up to
// the rounding errors of a program and no further; how far that is differs from element to element.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hlo/module.h"

namespace fuzz {

// The reference evaluator's results, and beside them those of the same program with every rounding
// disturbed by a few units in the last place, several times ("Monte Carlo arithmetic"). Where these
// differ, the program magnifies its rounding errors: an element may be as far off as they are.
// Where they differ in kind (a comparison of nearly equal numbers), nothing is known about the
// element.
class ExpectedResults {
 public:
  ExpectedResults(const hlo::Module& module, const std::vector<hlo::Literal>& arguments);

  // Empty if they are right; else the first wrong element. Thorough before it accuses.
  std::string Difference(const std::vector<hlo::Literal>& actual);

  const std::vector<hlo::Literal>& results() const { return results_; }
  // Of the elements compared so far.
  int64_t known() const { return known_; }
  int64_t unknown() const { return unknown_; }

 private:
  void Disturb(int times);
  std::string FirstDifference(const std::vector<hlo::Literal>& actual);

  const std::unique_ptr<hlo::Module> module_;  // normalizations as the arithmetic that they are
  const std::vector<hlo::Literal>& arguments_;
  std::vector<hlo::Literal> results_;
  std::vector<std::vector<hlo::Literal>> disturbed_;
  int64_t known_ = 0, unknown_ = 0;
};

}  // namespace fuzz
