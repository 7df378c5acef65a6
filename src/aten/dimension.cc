#include "aten/dimension.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "hlo/error.h"

namespace torch_xla {

int64_t WrapDimension(int64_t dimension, int64_t rank) {
  int64_t bound = std::max<int64_t>(rank, 1);
  if (dimension < -bound || dimension >= bound) {
    throw hlo::Error(hlo::ErrorCode::kOutOfRange,
                     "Dimension out of range (expected to be in range of [" +
                         std::to_string(-bound) + ", " + std::to_string(bound - 1) + "], but got " +
                         std::to_string(dimension) + ")");
  }
  return dimension < 0 ? dimension + bound : dimension;
}

Dimensions WrapDimensions(const Dimensions& dimensions, int64_t rank) {
  Dimensions wrapped;
  for (int64_t dimension : dimensions) {
    int64_t d = WrapDimension(dimension, rank);
    if (std::find(wrapped.begin(), wrapped.end(), d) != wrapped.end()) {
      throw hlo::Error("dim " + std::to_string(d) + " appears multiple times in the list of dims");
    }
    wrapped.push_back(d);
  }
  return wrapped;
}

void CheckSetOfDimensions(int64_t rank) {
  if (rank > 64) throw hlo::Error("only tensors with up to 64 dims are supported");
}

Dimensions ReductionDimensions(const std::optional<Dimensions>& dimensions, int64_t rank) {
  if (!dimensions || dimensions->empty()) return AllDimensions(rank);
  Dimensions wrapped = WrapDimensions(*dimensions, rank);
  CheckSetOfDimensions(rank);
  if (rank == 0) return {};
  std::sort(wrapped.begin(), wrapped.end());
  return wrapped;
}

Dimensions KeepDimensions(const Dimensions& dimensions, const Dimensions& reduced) {
  Dimensions kept = dimensions;
  for (int64_t d : reduced) kept[d] = 1;
  return kept;
}

int64_t NumElements(const Dimensions& dimensions, const Dimensions& among) {
  int64_t count = 1;
  for (int64_t d : among) count *= dimensions[d];
  return count;
}

Dimensions OtherDimensions(const Dimensions& dimensions, int64_t rank) {
  Dimensions others;
  for (int64_t d = 0; d < rank; ++d) {
    if (std::find(dimensions.begin(), dimensions.end(), d) == dimensions.end()) others.push_back(d);
  }
  return others;
}

Dimensions AllDimensions(int64_t rank) {
  Dimensions all(rank);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Dimensions PerDimension(const Dimensions& list, int64_t count, const char* what) {
  if (list.size() == 1) return Dimensions(count, list[0]);
  if (std::cmp_equal(list.size(), count)) return list;
  throw hlo::Error(std::string(what) + " must be one integer, or " + std::to_string(count) +
                   " of them, but got " + hlo::ToString(list));
}

Dimensions MoveDimensionPermutation(int64_t rank, int64_t from, int64_t to) {
  Dimensions permutation = OtherDimensions({from}, rank);
  permutation.insert(permutation.begin() + to, from);
  return permutation;
}

}  // namespace torch_xla
