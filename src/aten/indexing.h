// Reading and writing by index, as other families compose it. Indices are s32 or s64 and not
// negative unless said otherwise; those out of range read the nearest element and write nothing.
#pragma once

#include "aten/lowering.h"

namespace torch_xla {

// Negative indices count from the end of a dimension of `size`.
Value WrapIndex(Builder& b, Value index, int64_t size);
// table[index]: the index's dimensions, then the table's after its first.
Value TakeRows(Builder& b, Value table, Value index);
// Slices of x at `index` (one dimension) along a dimension.
Value TakeAlong(Builder& b, Value x, Value index, int64_t dimension);
// torch.gather: out[i, j] = x[index[i, j], j] for dimension 0, and so on. The index may be smaller
// than x in the other dimensions.
Value GatherAlong(Builder& b, Value x, Value index, int64_t dimension);
// x with `updates` (shaped like the index) combined into the elements that GatherAlong would read.
// The combiner takes (current, update).
Value ScatterAlong(Builder& b, Value x, Value index, Value updates, int64_t dimension,
                   hlo::Computation* combiner);
// Slices combined into x at `index` along a dimension: TakeAlong's counterpart.
Value ScatterSlices(Builder& b, Value x, Value index, Value slices, int64_t dimension,
                    hlo::Computation* combiner);
// The same with a reduction, taken in the accumulation type: in bf16, 256 + 1 is 256.
Value ScatterAlong(Builder& b, Value x, Value index, Value updates, int64_t dimension,
                   Opcode reduction);
Value ScatterSlices(Builder& b, Value x, Value index, Value slices, int64_t dimension,
                    Opcode reduction);
// A combiner that returns the update.
hlo::Computation* Overwrite(Builder& b, ElementType type);

}  // namespace torch_xla
