// Views: how a tensor that shares memory with others reads and writes its part of the shared value.
// A view is a chain of steps from the shared value (dense, row-major) to what the tensor shows;
// reading replays the chain, writing puts a new part into the shared value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/builder.h"
#include "lazy/op.h"

namespace lazy {

struct ViewStep {
  enum class Kind : uint8_t {
    kReshape,    // sizes: the new dimensions
    kPermute,    // sizes: the permutation
    kSlice,      // of `dimension`: `size` elements from `start` on, `stride` apart
    kExpand,     // sizes: the new dimensions, x's aligned at the last
    kBitcast,    // the same bytes as another type: type, sizes
    kAsStrided,  // of x's elements in row-major order: sizes, strides, from `start` on
  };
  Kind kind = Kind::kReshape;
  hlo::ElementType type = hlo::ElementType::kInvalid;
  hlo::Dimensions sizes = {}, strides = {};
  int64_t dimension = 0, start = 0, size = 0, stride = 1;

  bool has_start() const { return kind == Kind::kSlice || kind == Kind::kAsStrided; }
  bool operator==(const ViewStep&) const = default;
  uint64_t Hash() const;
  // What torch calls it: "aten::permute".
  const char* name() const;
  // "aten::permute(1, 0)"
  std::string ToString() const;
};

using ViewChain = std::vector<ViewStep>;

// Appends `step`, merging it with the last one where that is the same thing.
void AppendStep(ViewChain& chain, ViewStep step);

// Adds the starts of a chain's steps to the operands, as indices; the chain that is left, whose
// starts are 0, is an attribute.
ViewChain AddStarts(OperandList& operands, const ViewChain& chain);

// The lowerings: the part of `base` that a chain shows, and `base` with that part replaced by
// `part` (of the part's type, and of its shape or one that is stretched to it as torch broadcasts).
// `starts`: of the steps that have one, in their order; a part lies within what it is part of.
// Writing where a chain repeats elements is an error that the caller has made sure of; elements
// that as_strided or expand show twice take one of the values written.
hlo::Value ReadView(hlo::Builder& b, hlo::Value base, std::vector<Index> starts, ViewChain chain);
hlo::Value WriteView(hlo::Builder& b, hlo::Value base, hlo::Value part, std::vector<Index> starts,
                     ViewChain chain);

}  // namespace lazy
