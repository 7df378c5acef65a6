// One program for any sizes, from programs of a few: StableHLO's dynamic form.
//
// The samples are one program, recorded with different sizes of its arguments. A dimension that has
// the same size in all of them stays as it is, one that differs becomes known only at run time
// (`?`). What an operation says of such sizes (the dimensions of a broadcast's result, a limit, a
// mean's divisor) is computed from those of values before it, by a formula that gives each sample
// its number: a size, its multiple or part plus a constant, a product of sizes or one less than
// that. Three samples whose sizes have nothing in common tell these apart.
#pragma once

#include <memory>
#include <span>

#include "hlo/module.h"

namespace passes {

// Throws hlo::Error (kUnimplemented) naming the operation, if the samples differ in more than
// sizes, a size has no such formula, or an operation's result cannot have a size from run time.
std::unique_ptr<hlo::Module> GeneralizeSizes(std::span<const hlo::Module* const> samples);

}  // namespace passes
