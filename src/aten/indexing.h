// Reading and writing by index, as the families of operators compose it. Indices are s32 or s64 and
// not negative unless said otherwise; those out of range read the nearest element and write
// nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "aten/lowering.h"
#include "aten/promotion.h"
#include "aten/value_check.h"

namespace torch_xla {

// --- Indices

// Eager's kernels are for some types of indices; `narrow`: for int32, too.
void RequireIndexType(Value index, bool narrow, const char* name);
// Of a kernel that names neither the index nor the dimension.
Words OutOfRange();
// Negative indices count from the end of a dimension of `size`.
Value WrapIndex(Builder& b, Value index, int64_t size);
// Index vectors of one value from each of `indices`, which have the shape: [shape…, indices].
Value JoinIndices(Builder& b, const Values& indices, const Dimensions& shape);

// A number counts as one element in one dimension.
Value AtLeast1d(Builder& b, Value x);
int64_t SizeAlong(Value x, int64_t dimension);

// --- Reading

// table[index]: the index's dimensions, then the table's after its first.
Value TakeRows(Builder& b, Value table, Value index);
// Slices of x at `index` (one dimension) along a dimension.
Value TakeAlong(Builder& b, Value x, Value index, int64_t dimension);
// torch.gather: out[i, j] = x[index[i, j], j] for dimension 0, and so on. The index may be smaller
// than x in the other dimensions.
Value GatherAlong(Builder& b, Value x, Value index, int64_t dimension);

// --- Writing

// x with `updates` (shaped like the index) combined into the elements that GatherAlong would read.
// The combiner takes (current, update).
Value ScatterAlong(Builder& b, Value x, Value index, Value updates, int64_t dimension,
                   hlo::Computation* combiner);
// Slices combined into x at `index` along a dimension: TakeAlong's counterpart.
Value ScatterSlices(Builder& b, Value x, Value index, Value slices, int64_t dimension,
                    hlo::Computation* combiner);
// A combiner that returns the update.
hlo::Computation* Overwrite(Builder& b, ElementType type);

// The same with a reduction, taken in the accumulation type.
Value ScatterAlong(Builder& b, Value x, Value index, Value updates, int64_t dimension,
                   Opcode reduction);
Value ScatterSlices(Builder& b, Value x, Value index, Value slices, int64_t dimension,
                    Opcode reduction);
// Throws if there are updates, and of another type than what they go into.
void RequireOneType(Value x, Value updates);
// scatter(x, updates, combiner) of a reduction in the accumulation type: in bf16, 256 + 1 is 256.
template <typename Scatter>
Value ReduceWidely(Builder& b, Value x, Value updates, Opcode reduction, const Scatter& scatter) {
  RequireOneType(x, updates);
  Value wide = ToAccumulation(b, x);
  auto* combiner = b.ScalarCombiner(reduction, wide->element_type());
  return b.Convert(scatter(wide, ToAccumulation(b, updates), combiner), x->element_type());
}

// Combines updates into x.
using ReductionScatter = std::function<Value(Value x, Value updates, Opcode reduction)>;
// x with `updates` reduced into it by `scatter`; elements that receive any start from the
// reduction's identity unless include_self, and are divided by their number for a mean.
Value ReduceInto(Builder& b, Value x, Value updates, const std::string& reduce, bool include_self,
                 const ReductionScatter& scatter);

}  // namespace torch_xla
