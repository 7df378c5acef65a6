// Histograms over one and more dimensions. Bins are found by dividing (histc) or by searching the
// edges, and counted by adding each element's weight to its bin.
#include <cmath>

#include "aten/dimension.h"
#include "aten/elementwise.h"
#include "aten/indexing.h"
#include "aten/op.h"
#include "aten/reduction.h"
#include "aten/sort.h"

namespace torch_xla {
namespace {

void RequireFloat(Value x, const char* name) {
  if (IsFloatValue(x)) return;
  throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                   std::string("\"") + name + "\" not implemented for " + x->shape().ToString());
}

// What stands at `index` (s64; one that is out of range counts nowhere) is added up.
Value CountBins(Builder& b, Value index, Value weight, int64_t bins) {
  Value zeros = b.Zeros(Shape(weight->element_type(), {bins}));
  return ScatterSlices(b, zeros, index, weight, 0, Opcode::kAdd);
}

// The smallest and the largest element, as scalars; 0 and `high` if there is none.
std::pair<Value, Value> Range(Builder& b, Value x, double high) {
  if (x->shape().num_elements() == 0) return {ScalarLike(b, x, 0), ScalarLike(b, x, high)};
  Dimensions all = AllDimensions(x->shape().rank());
  return {Min(b, x, all), Max(b, x, all)};
}

// A range without extent grows by `by` on both sides.
std::pair<Value, Value> Widened(Builder& b, std::pair<Value, Value> range, double by) {
  auto [low, high] = range;
  Value is_empty = b.Eq(low, high);
  Value step = ScalarLike(b, low, by);
  return {b.Select(is_empty, b.Subtract(low, step), low),
          b.Select(is_empty, b.Add(high, step), high)};
}

Value Histc(Builder& b, Value x, int64_t bins, std::optional<Scalar> low,
            std::optional<Scalar> high) {
  RequireFloat(x, "histogram_cpu");
  ElementType type = x->element_type();
  x = b.Reshape(x, {x->shape().num_elements()});
  auto [start, end] = low ? std::pair<Value, Value>(b.Convert(*low, type), b.Convert(*high, type))
                          : Widened(b, Range(b, x, 0), 1);
  Value first = Splat(b, start, x->dimensions()), last = Splat(b, end, x->dimensions());
  Value count = Like(b, x, static_cast<double>(bins));
  Value scaled = b.Divide(b.Multiply(b.Subtract(x, first), count), b.Subtract(last, first));
  Value inside = b.And(b.Ge(x, first), b.Le(x, last));
  Value index = b.Convert(ZeroUnless(b, inside, scaled), ElementType::kS64);
  index = b.Minimum(index, b.Full(index->shape(), bins - 1));
  index = b.Select(inside, index, b.Full(index->shape(), bins));
  return CountBins(b, index, Like(b, x, 1), bins);
}

// A range of equal bounds is the data's.
at::Tensor HistcTensor(const at::Tensor& x, int64_t bins, const at::Scalar& low,
                       const at::Scalar& high) {
  TORCH_CHECK(bins > 0, "bins must be > 0, but got ", bins, " for bin");
  // As on GPUs; f64 divides integers below 2^53 to the right bin.
  if (at::isIntegralType(x.scalar_type(), /*includeBool=*/false)) {
    return HistcTensor(x.to(at::kDouble), bins, low, high).to(x.scalar_type());
  }
  if (low.toDouble() == high.toDouble()) {
    if (low.toDouble() != 0 && x.numel() == 0) {
      return Record<&Histc>(x, bins, at::Scalar(low.toDouble() - 1),
                            at::Scalar(high.toDouble() + 1));
    }
    return Record<&Histc>(x, bins, std::nullopt, std::nullopt);
  }
  TORCH_CHECK(std::isfinite(low.toDouble()) && std::isfinite(high.toDouble()), "range of [",
              low.toDouble(), ", ", high.toDouble(), "] is not finite");
  TORCH_CHECK(low.toDouble() < high.toDouble(), "max must be larger than min");
  return Record<&Histc>(x, bins, low, high);
}

// The bins that the lowering finds, to the last rounding.
at::Tensor RunHistc(const at::Tensor& x, int64_t bins, const std::optional<at::Tensor>& low,
                    const std::optional<at::Tensor>& high) {
  if (x.numel() == 0) return at::zeros({bins}, x.options());
  at::Tensor first = low ? low->to(x.scalar_type()) : x.min();
  at::Tensor last = high ? high->to(x.scalar_type()) : x.max();
  if (!low && first.equal(last)) {
    first = first - 1;
    last = last + 1;
  }
  TORCH_CHECK(first.isfinite().logical_and_(last.isfinite()).item<bool>(), "no range");
  const at::Tensor values = x.flatten();
  const at::Tensor inside = values.ge(first).logical_and_(values.le(last));
  const at::Tensor kept = values.masked_select(inside);
  const at::Tensor scaled = (kept - first) * static_cast<double>(bins) / (last - first);
  const at::Tensor index = scaled.to(at::kLong).clamp_max(bins - 1);
  return at::bincount(index, {}, bins).to(x.scalar_type());
}

using OptionalRange = std::optional<std::vector<double>>;

// bins + 1 edges from low to high, counted from the nearer end.
Value EvenEdges(Builder& b, Value low, Value high, int64_t bins) {
  ElementType type = low->element_type();
  Dimensions shape = {bins + 1};
  Value step = b.Divide(b.Subtract(high, low), ScalarLike(b, low, static_cast<double>(bins)));
  Value index = Iota(b, shape, 0);
  Value from_low = b.Convert(index, type);
  Value from_high = b.Subtract(Like(b, from_low, static_cast<double>(bins)), from_low);
  Value steps = Splat(b, step, shape);
  Value rising = b.Add(Splat(b, low, shape), b.Multiply(steps, from_low));
  Value falling = b.Subtract(Splat(b, high, shape), b.Multiply(steps, from_high));
  Value is_low = b.Lt(index, b.Full(index->shape(), (bins + 1) / 2));
  return b.Select(is_low, rising, falling);
}

// [elements, dimensions].
Value AsPoints(Builder& b, Value x) {
  if (x->shape().rank() < 2) {
    throw hlo::Error("torch.histogramdd: input tensor should have at least 2 dimensions, but got " +
                     x->shape().ToString());
  }
  int64_t width = x->dimensions().back();
  int64_t count = 1;
  for (size_t d = 0; d + 1 < x->dimensions().size(); ++d) count *= x->dimensions()[d];
  return b.Reshape(x, {count, width});
}

Value Coordinate(Builder& b, Value points, int64_t d) {
  return b.Reshape(b.SliceInDim(points, 1, d, d + 1), {points->shape().dimension(0)});
}

void CheckRange(const OptionalRange& range, int64_t width) {
  if (!range) return;
  if (static_cast<int64_t>(range->size()) != 2 * width) {
    throw hlo::Error("torch.histogramdd: for a " + std::to_string(width) +
                     "-dimensional histogram range should have " + std::to_string(2 * width) +
                     " elements, but got " + std::to_string(range->size()));
  }
  for (int64_t d = 0; d < width; ++d) {
    double low = (*range)[2 * d], high = (*range)[2 * d + 1];
    if (!std::isfinite(low) || !std::isfinite(high)) {
      throw hlo::Error("torch.histogramdd: range [" + std::to_string(low) + ", " +
                       std::to_string(high) + "] is not finite");
    }
    if (low > high) {
      throw hlo::Error("torch.histogramdd: min should not exceed max, but got min " +
                       std::to_string(low) + " max " + std::to_string(high));
    }
  }
}

Values BinEdges(Builder& b, Value points, const Dimensions& bins, const OptionalRange& range) {
  RequireFloat(points, "histogramdd");
  int64_t width = points->shape().dimension(1);
  if (static_cast<int64_t>(bins.size()) != width) {
    throw hlo::Error(
        "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  }
  CheckRange(range, width);
  Values edges;
  for (int64_t d = 0; d < width; ++d) {
    if (bins[d] <= 0) {
      throw hlo::Error("torch.histogramdd(): bins must be > 0, but got " + std::to_string(bins[d]) +
                       " for dimension " + std::to_string(d));
    }
    std::pair<Value, Value> ends =
        range ? std::pair<Value, Value>(ScalarLike(b, points, (*range)[2 * d]),
                                        ScalarLike(b, points, (*range)[2 * d + 1]))
              : Range(b, Coordinate(b, points, d), 1);
    auto [low, high] = Widened(b, ends, 0.5);
    edges.push_back(EvenEdges(b, low, high, bins[d]));
  }
  return edges;
}

// The bin of each element among the edges, -1 outside; the last edge belongs to the last bin.
Value BinOf(Builder& b, Value x, Value edges) {
  int64_t bins = edges->shape().dimension(0) - 1;
  Value above = CountBelow(b, edges, x, true);
  Value index = b.Subtract(above, b.Full(above->shape(), int64_t{1}));
  Value last = Splat(b, b.Reshape(b.SliceInDim(edges, 0, bins, bins + 1), {}), x->dimensions());
  index = b.Select(b.Eq(x, last), b.Full(index->shape(), bins - 1), index);
  Value outside = b.Or(b.Gt(x, last), IsNan(b, x));
  return b.Select(outside, b.Full(index->shape(), int64_t{-1}), index);
}

// Divided by the total and each bin's extent.
Value Density(Builder& b, Value histogram, const Values& edges) {
  Value total = Sum(b, histogram, AllDimensions(histogram->shape().rank()));
  const Dimensions& shape = histogram->dimensions();
  histogram = b.Divide(histogram, Splat(b, total, shape));
  for (size_t d = 0; d < edges.size(); ++d) {
    int64_t bins = shape[d];
    Value extent =
        b.Subtract(b.SliceInDim(edges[d], 0, 1, bins + 1), b.SliceInDim(edges[d], 0, 0, bins));
    histogram = b.Divide(histogram, AlongDimension(b, extent, shape, static_cast<int64_t>(d)));
  }
  return histogram;
}

Value HistogramOf(Builder& b, Value points, const Values& edges, const OptionalValue& weight,
                  bool density) {
  RequireFloat(points, "histogramdd");
  int64_t count = points->shape().dimension(0), total = 1;
  if (static_cast<int64_t>(edges.size()) != points->shape().dimension(1)) {
    throw hlo::Error("torch.histogramdd: expected " + std::to_string(points->shape().dimension(1)) +
                     " sequences of bin edges but got " + std::to_string(edges.size()));
  }
  Dimensions shape;
  Value flat = nullptr, inside = nullptr;
  for (size_t d = 0; d < edges.size(); ++d) {
    if (edges[d]->shape().rank() != 1 || edges[d]->shape().num_elements() < 1) {
      throw hlo::Error(
          "torch.histogramdd: bins tensor should have one dimension and an edge, but "
          "got " +
          edges[d]->shape().ToString());
    }
    if (edges[d]->element_type() != points->element_type()) {
      throw hlo::Error(
          "torch.histogramdd: input tensor and bins tensors should have the same "
          "dtype, but got input " +
          points->shape().ToString() + " and bins " + edges[d]->shape().ToString());
    }
    int64_t bins = edges[d]->shape().dimension(0) - 1;
    Value index = BinOf(b, Coordinate(b, points, static_cast<int64_t>(d)), edges[d]);
    Value is_in = b.Ge(index, b.Zeros(index->shape()));
    flat = flat == nullptr ? index : b.Add(b.Multiply(flat, b.Full(index->shape(), bins)), index);
    inside = inside == nullptr ? is_in : b.And(inside, is_in);
    shape.push_back(bins);
    total *= bins;
  }
  flat = b.Select(inside, flat, b.Full(flat->shape(), total));
  if (weight && (*weight)->element_type() != points->element_type()) {
    throw hlo::Error(
        "torch.histogramdd: if weight tensor is provided, input tensor and weight "
        "tensor should have the same dtype");
  }
  if (weight && (*weight)->shape().num_elements() != count) {
    throw hlo::Error(
        "torch.histogramdd: if weight tensor is provided it should have the same shape "
        "as the input tensor excluding its innermost dimension, but got " +
        (*weight)->shape().ToString() + " for " + std::to_string(count) + " elements");
  }
  Value weights =
      weight ? b.Reshape(*weight, {count}) : b.Full(Shape(points->element_type(), {count}), 1.0);
  Value histogram = b.Reshape(CountBins(b, flat, weights, total), shape);
  return density ? Density(b, histogram, edges) : histogram;
}

Value AsColumn(Builder& b, Value x) { return b.Reshape(x, {x->shape().num_elements(), 1}); }

std::pair<Value, Value> HistogramBins(Builder& b, Value x, Value edges, OptionalValue weight,
                                      bool density) {
  return {HistogramOf(b, AsColumn(b, x), {edges}, weight, density), edges};
}
std::pair<Value, Value> HistogramCount(Builder& b, Value x, int64_t bins, OptionalRange range,
                                       OptionalValue weight, bool density) {
  Value points = AsColumn(b, x);
  Values edges = BinEdges(b, points, {bins}, range);
  return {HistogramOf(b, points, edges, weight, density), edges[0]};
}

Values HistogramddEdges(Builder& b, Value x, Dimensions bins, OptionalRange range,
                        OptionalValue weight, bool density) {
  return BinEdges(b, AsPoints(b, x), bins, range);
}
Value HistogramddCounts(Builder& b, Value x, Dimensions bins, OptionalRange range,
                        OptionalValue weight, bool density) {
  Value points = AsPoints(b, x);
  return HistogramOf(b, points, BinEdges(b, points, bins, range), weight, density);
}
Value HistogramddBins(Builder& b, Value x, Values edges, OptionalValue weight, bool density) {
  return HistogramOf(b, AsPoints(b, x), edges, weight, density);
}

OptionalRange AsVector(std::optional<at::ArrayRef<double>> range) {
  return range ? OptionalRange(range->vec()) : std::nullopt;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  using Tensor = at::Tensor;
  using Weight = std::optional<at::Tensor>;
  using Ends = std::optional<at::ArrayRef<double>>;
  m.impl("histc", &HistcTensor);
  RunBy<&Histc>(&RunHistc);
  Register<&HistogramBins>(m, "histogram.bins_tensor");
  m.impl("histogram.bin_ct",
         [](const Tensor& x, int64_t bins, Ends range, const Weight& weight, bool density) {
           return Record<&HistogramCount>(x, bins, AsVector(range), weight, density);
         });
  m.impl("_histogramdd_bin_edges",
         [](const Tensor& x, at::IntArrayRef bins, Ends range, const Weight& weight, bool density) {
           return Record<&HistogramddEdges>(x, bins, AsVector(range), weight, density);
         });
  m.impl("_histogramdd_from_bin_cts",
         [](const Tensor& x, at::IntArrayRef bins, Ends range, const Weight& weight, bool density) {
           return Record<&HistogramddCounts>(x, bins, AsVector(range), weight, density);
         });
  Register<&HistogramddBins>(m, "_histogramdd_from_bin_tensors");
}

}  // namespace torch_xla
