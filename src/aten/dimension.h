// torch's rules for dimension arguments: negative ones count from the end, an empty or absent list
// means all, a scalar counts as having one dimension.
#pragma once

#include <optional>

#include "aten/lowering.h"

namespace torch_xla {

// `dimension` in [-rank, rank) as a number in [0, rank); a scalar accepts -1 and 0. Otherwise an
// error of code kOutOfRange (IndexError).
int64_t WrapDimension(int64_t dimension, int64_t rank);
// Each wrapped; a repeated one is an error.
Dimensions WrapDimensions(const Dimensions& dimensions, int64_t rank);
// Throws for more dimensions than torch has sets of.
void CheckSetOfDimensions(int64_t rank);
// What a reduction runs over, sorted: the listed dimensions, all when none are listed.
Dimensions ReductionDimensions(const std::optional<Dimensions>& dimensions, int64_t rank);
// The shape with the reduced dimensions of size 1.
Dimensions KeepDimensions(const Dimensions& dimensions, const Dimensions& reduced);
// The product of the sizes of the listed dimensions.
int64_t NumElements(const Dimensions& dimensions, const Dimensions& among);
// The dimensions in [0, rank) that are not listed, in order.
Dimensions OtherDimensions(const Dimensions& dimensions, int64_t rank);
// 0, 1, …, rank - 1.
Dimensions AllDimensions(int64_t rank);
// A list with an entry for each of `count` dimensions, where one entry stands for all. Of another
// length it is an error that says what the list is.
Dimensions PerDimension(const Dimensions& list, int64_t count, const char* what);
// A permutation that moves dimension `from` to `to`, keeping the others' order.
Dimensions MoveDimensionPermutation(int64_t rank, int64_t from, int64_t to);

}  // namespace torch_xla
