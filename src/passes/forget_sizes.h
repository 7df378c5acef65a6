// A program for any sizes of chosen dimensions, from one with the sizes of a call: StableHLO's
// dynamic form, with the broadcasting that a framework leaves to its operators.
//
// generalize_sizes.h makes such a program of several; here there is one, and nothing says which
// sizes belong together. So each chosen dimension is a size of its own, which may also be 1 when
// the program runs: where it meets another size in an element-wise operation, both stretch to what
// numpy's rule gives of them (`get_dimension_size`, `dynamic_broadcast_in_dim`). What the program
// has as a number stays one: a size that a function reads of its argument and that meets no unknown
// one, such as that of zeros which it returns, is the size of the call.
#pragma once

#include <memory>
#include <span>

#include "hlo/module.h"

namespace passes {

struct ParameterDimension {
  int64_t parameter = 0, dimension = 0;
  bool operator==(const ParameterDimension&) const = default;
};

// Beside element-wise operations, dimensions of unknown size go through broadcasts, transposes,
// products and reductions of other dimensions. Throws hlo::Error (kUnimplemented), naming the
// operation, where one comes to another: its attributes or numbers could hold the size. So could a
// size that comes from no parameter, and that an unknown one meets.
std::unique_ptr<hlo::Module> ForgetSizes(const hlo::Module& module,
                                         std::span<const ParameterDimension> forgotten);

}  // namespace passes
