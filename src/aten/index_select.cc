// Slices along a dimension by a vector of indices: index_select, and writes to what it reads.
#include <cstdint>
#include <string>

#include "aten/fallback.h"
#include "aten/indexing.h"
#include "aten/narrow_sums.h"
#include "aten/op.h"
#include "aten/small_rows.h"
#include "aten/value_check.h"

namespace torch_xla {
namespace {

// Eager has a kernel of its own for dimension 1.
void CheckSelected(Builder& b, Value x, Value index, int64_t dimension) {
  const int64_t size = SizeAlong(x, dimension);
  const std::string second =
      "INDICES element is out of DATA bounds, id={} axis_dim=" + std::to_string(size);
  CheckBounds(b, index, Positions(size),
              dimension == 1 ? Words{kRuntimeError, second} : OutOfRange());
}

// Eager adds by scattering, where slices are not within others.
void CheckAdded(Builder& b, Value x, Value index, int64_t dimension) {
  const int64_t size = SizeAlong(x, dimension), rank = x->shape().rank();
  const bool scatters = rank > 1 && (dimension == 0 || dimension == rank - 1);
  CheckBounds(b, index, Positions(size),
              scatters ? OutOfBounds(kRuntimeError, dimension, size) : OutOfRange());
}

Value IndexSelect(Builder& b, Value x, Dimension dimension, Value index) {
  if (index->shape().rank() > 1) {
    throw hlo::Error(kIndexError, "index_select(): Index is supposed to be a vector");
  }
  RequireIndexType(index, true, "index_select");
  CheckSelected(b, x, index, dimension);
  const int64_t count = index->shape().num_elements();
  if (x->dimensions().empty() && count != 1) {
    throw hlo::Error("index_select(): Index to scalar can have only 1 value, got " +
                     std::to_string(count) + " value(s)");
  }
  if (x->dimensions().empty()) return x;
  return TakeAlong(b, x, AtLeast1d(b, index), dimension);
}

template <typename Combiner>
Value SlicesInto(Builder& b, Value x, int64_t dimension, Value index, Value source,
                 Combiner combiner) {
  Dimensions shape = x->dimensions();
  index = AtLeast1d(b, index);
  Value result =
      ScatterSlices(b, AtLeast1d(b, x), index, AtLeast1d(b, source), dimension, combiner);
  return b.Reshape(result, shape);
}

Value IndexAdd(Builder& b, Value x, Dimension dimension, Value index, Value source,
               FittingScalar alpha) {
  RequireIndexType(index, true, "index_add");
  CheckAdded(b, x, index, dimension);
  const Value factor = b.Convert(alpha, source->element_type());
  Value scaled = b.Multiply(source, Splat(b, factor, source->dimensions()));
  // As eager does; a product with 1 + 0i would make NaN of infinities.
  if (hlo::IsComplex(source->element_type())) {
    const Value is_one = b.Eq(factor, Like(b, factor, 1));
    scaled = b.Select(b.BroadcastTo(is_one, source->dimensions()), source, scaled);
  }
  return SlicesInto(b, x, dimension, index, scaled, Opcode::kAdd);
}

// index_add of numbers of 16 bits, which torch's kernel adds up in 16 bits: in f32, and of a large
// `x` only those slices that something is added to.
at::Tensor AddSlicesInFloat(const at::Tensor& x, int64_t dimension, const at::Tensor& index,
                            const at::Tensor& source, const at::Scalar& alpha) {
  const at::Tensor wide = source.to(at::kFloat);
  constexpr int64_t kFewTimes = 4;
  if (x.dim() == 0 || kFewTimes * index.numel() >= x.size(dimension)) {
    return x.to(at::kFloat).index_add_(dimension, index, wide, alpha).to(x.scalar_type());
  }
  const auto [slices, places] = at::_unique(index, /*sorted=*/true, /*return_inverse=*/true);
  at::Tensor sums = x.index_select(dimension, slices).to(at::kFloat);
  sums.index_add_(dimension, places, wide, alpha);
  return x.index_copy(dimension, slices.to(at::kLong), sums.to(x.scalar_type()));
}

at::Tensor RunIndexAdd(const at::Tensor& x, int64_t dimension, const at::Tensor& index,
                       const at::Tensor& source, const at::Scalar& alpha) {
  if (dimension == 0 && alpha.equal(1)) {
    at::Tensor sum = AddRowsOnHost(x, index, source);
    if (sum.defined()) return sum;
  }
  if (StopsInOperandType(x, source, index.numel())) {
    return AddSlicesInFloat(x, dimension, index, source, alpha);
  }
  return at::index_add(x, dimension, index, source, alpha);
}
at::Tensor& IndexAddInPlace(at::Tensor& self, int64_t dimension, const at::Tensor& index,
                            const at::Tensor& source, const at::Scalar& alpha) {
  static const InPlaceOperator op("aten::index_add_");
  WriteInPlace(op, self, Record<&IndexAdd>(self, dimension, index, source, alpha),
               {&index, &source});
  return self;
}
Value IndexCopy(Builder& b, Value x, Dimension dimension, Value index, Value source) {
  RequireIndexType(index, false, "index_copy");
  Words words = OutOfBounds(kIndexError, dimension, SizeAlong(x, dimension));
  words.text = "index_copy_(): " + words.text;
  CheckBounds(b, index, Positions(SizeAlong(x, dimension)), words);
  return SlicesInto(b, x, dimension, index, source, Overwrite(b, x->element_type()));
}
Value IndexFill(Builder& b, Value x, Dimension dimension, Value index, Value value) {
  RequireIndexType(index, false, "index_fill");
  if (hlo::IsComplex(value->element_type()) && !hlo::IsComplex(x->element_type())) {
    throw hlo::Error(
        hlo::ErrorCode::kUnimplemented,
        "aten::index_fill: not implemented for a complex number in " + x->shape().ToString());
  }
  const int64_t size = SizeAlong(x, dimension);
  CheckBounds(b, index, WrappedPositions(size), OutOfBounds(kIndexError, dimension, size));
  Dimensions slices = AtLeast1d(b, x)->dimensions();
  slices[dimension] = AtLeast1d(b, index)->shape().dimension(0);
  Value updates = b.BroadcastTo(b.Convert(value, x->element_type()), slices);
  index = WrapIndex(b, index, size);
  return SlicesInto(b, x, dimension, index, updates, Overwrite(b, x->element_type()));
}
Value IndexFillScalar(Builder& b, Value x, Dimension dimension, Value index, FittingScalar value) {
  return IndexFill(b, x, dimension, index, value);
}
Value IndexReduce(Builder& b, Value x, Dimension dimension, Value index, Value source,
                  std::string reduce, bool include_self) {
  RequireIndexType(index, true, "index_reduce");
  if (reduce != "prod" && reduce != "mean" && reduce != "amax" && reduce != "amin") {
    throw hlo::Error(
        "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got " + reduce +
        ".");
  }
  // Of more dimensions eager reduces slices, by functions that take them.
  if (x->shape().rank() <= 1 && (IsPred(x) || hlo::IsComplex(x->element_type()))) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "aten::index_reduce: not implemented for " + x->shape().ToString());
  }
  CheckBounds(b, index, Positions(SizeAlong(x, dimension)), OutOfRange());
  const auto scatter = [&](Value into, Value values, Opcode reduction) {
    return SlicesInto(b, into, dimension, index, values, reduction);
  };
  return ReduceInto(b, x, source, reduce, include_self, scatter);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  Register<&IndexSelect>(m, "index_select");
  RunBy<&IndexAdd>(&RunIndexAdd);
  Register<&IndexAdd>(m, "index_add");
  m.impl("index_add_", &IndexAddInPlace);
  Register<&IndexCopy>(m, "index_copy");
  Register<&IndexFill>(m, "index_fill.int_Tensor");
  Register<&IndexFillScalar>(m, "index_fill.int_Scalar");
  Register<&IndexReduce>(m, "index_reduce");
}

}  // namespace torch_xla
