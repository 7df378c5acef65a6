// Pooling over one, two or three spatial dimensions, which are the last ones; what comes before
// them is batch.
#include "aten/pooling.h"

#include <ATen/core/TensorBase.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "aten/dimension.h"
#include "aten/elementwise.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "aten/resampling.h"
#include "aten/twin.h"
#include "aten/value_check.h"
#include "hlo/size_arithmetic.h"

namespace torch_xla {
namespace {

// A pooling window over the last dimensions, a list entry for each.
struct Pooling {
  Dimensions kernel, stride, padding, dilation;
  Dimensions output;        // spatial sizes of the result
  Dimensions padding_high;  // with what ceil_mode adds
  int64_t rank() const { return static_cast<int64_t>(kernel.size()); }
};

// What a maximum starts from.
Value Lowest(Builder& b, ElementType type) {
  return b.Constant(hlo::IdentityLiteral(Opcode::kMaximum, type));
}

// Of two (value, position) pairs the larger one, or NaN against a number; among equals the one that
// stands first, of two NaN the one that stands last, as in eager. In this form the order of
// combination does not matter. A negative position is none. Each has its type.
hlo::Computation* LargerPair(Builder& b, ElementType value_type, ElementType position_type) {
  Shape value = Shape::Scalar(value_type), index = Shape::Scalar(position_type);
  return b.Region("larger_pair", {value, index, value, index},
                  [](Builder& r, const Values& p) -> Values {
                    Value larger = r.Gt(p[2], p[0]), equal = r.Eq(p[2], p[0]);
                    Value wins = r.Or(larger, r.And(equal, r.Lt(p[3], p[1])));
                    if (IsFloatValue(p[0])) {
                      Value later = r.Or(r.Not(IsNan(r, p[0])), r.Gt(p[3], p[1]));
                      wins = r.Or(wins, r.And(IsNan(r, p[2]), later));
                    }
                    // The initial position is negative: anything replaces it.
                    Value none = r.Lt(p[1], r.Zeros(p[1]->shape()));
                    Value some = r.Ge(p[3], r.Zeros(p[3]->shape()));
                    Value take = r.And(some, r.Or(none, wins));
                    return {r.Select(take, p[2], p[0]), r.Select(take, p[3], p[1])};
                  });
}

int64_t SpatialSize(Value x, const Pooling& p, int64_t i) {
  return x->shape().dimension(x->shape().rank() - p.rank() + i);
}

// The last window must start inside the input or its left padding, even with ceil_mode.
int64_t OutputSize(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                   bool ceil_mode) {
  int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1;
  if (ceil_mode) span += stride - 1;
  if (span < 0) return 0;
  int64_t count = span / stride + 1;
  if (ceil_mode && (count - 1) * stride >= size + padding) --count;
  return count;
}

// Only the batch may be empty.
void CheckNotEmpty(Value x, const Pooling& p) {
  int64_t first = x->shape().rank() == p.rank() + 2 ? 1 : 0;
  for (int64_t d = first; d < x->shape().rank(); ++d) {
    if (x->shape().dimension(d) != 0) continue;
    throw hlo::Error(
        "Expected input's non-batch dimensions to have positive length, but input has "
        "a shape of " +
        hlo::ToString(x->dimensions()) + " and non-batch dimension " + std::to_string(d) +
        " has length zero!");
  }
}

Pooling MakePooling(Value x, int64_t rank, const Dimensions& kernel, const Dimensions& stride,
                    const Dimensions& padding, const Dimensions& dilation, bool ceil_mode) {
  Pooling p;
  p.kernel = PerDimension(kernel, rank, "kernel_size");
  p.stride = stride.empty() ? p.kernel : PerDimension(stride, rank, "stride");
  p.padding = PerDimension(padding, rank, "padding");
  p.dilation = PerDimension(dilation, rank, "dilation");
  if (x->shape().rank() < rank + 1 || x->shape().rank() > rank + 2) {
    throw hlo::Error(
        "pooling over " + std::to_string(rank) +
        " dimensions expects them with a channel and maybe a batch dimension before, but got " +
        x->shape().ToString());
  }
  CheckNotEmpty(x, p);
  for (int64_t i = 0; i < rank; ++i) {
    if (p.kernel[i] <= 0 || p.stride[i] <= 0 || p.dilation[i] <= 0) {
      throw hlo::Error("kernel size, stride and dilation should be greater than zero");
    }
    if (p.padding[i] < 0) throw hlo::Error("pad must be non-negative");
    if (p.padding[i] * 2 > (p.kernel[i] - 1) * p.dilation[i] + 1) {
      throw hlo::Error("pad should be at most half of effective kernel size, but got pad=" +
                       std::to_string(p.padding[i]) +
                       ", kernel_size=" + std::to_string(p.kernel[i]) +
                       " and dilation=" + std::to_string(p.dilation[i]));
    }
    int64_t size = SpatialSize(x, p, i);
    int64_t output =
        OutputSize(size, p.kernel[i], p.stride[i], p.padding[i], p.dilation[i], ceil_mode);
    if (output < 1) {
      throw hlo::Error("Given input size: " + x->shape().ToString() + ". Output size is too small");
    }
    int64_t needed = (output - 1) * p.stride[i] + (p.kernel[i] - 1) * p.dilation[i] + 1;
    p.output.push_back(output);
    p.padding_high.push_back(needed - size - p.padding[i]);
  }
  return p;
}

// The window over all dimensions of a value of `rank` dimensions.
hlo::Window FullWindow(int64_t rank, const Pooling& p) {
  hlo::Window window = hlo::Window::Trivial(rank);
  for (int64_t i = 0; i < p.rank(); ++i) {
    int64_t d = rank - p.rank() + i;
    window.dimensions[d] = p.kernel[i];
    window.strides[d] = p.stride[i];
    window.padding_low[d] = p.padding[i];
    window.padding_high[d] = p.padding_high[i];
    window.window_dilations[d] = p.dilation[i];
  }
  return window;
}

Value SumWindows(Builder& b, Value x, const Pooling& p) {
  Value zero = b.Zeros(Shape::Scalar(x->element_type()));
  return b.ReduceWindow(x, zero, FullWindow(x->shape().rank(), p),
                        b.ScalarCombiner(Opcode::kAdd, x->element_type()));
}

// --- Maximum

// Each element's position among the spatial ones, row-major: what torch calls its index.
Value FlatPositions(Builder& b, ElementType type, const Dimensions& dimensions,
                    int64_t spatial_rank) {
  Value flat = nullptr;
  int64_t stride = 1, rank = static_cast<int64_t>(dimensions.size());
  for (int64_t d = rank - 1; d >= rank - spatial_rank; --d) {
    Value index = b.Iota(Shape(type, dimensions), d);
    Value term = b.Multiply(index, b.Full(index->shape(), stride));
    flat = flat == nullptr ? term : b.Add(flat, term);
    stride *= dimensions[d];
  }
  return flat;
}

// They are found in 32 bits where these hold them, which a vector has twice as many of.
ElementType PositionType(Value x, int64_t spatial_rank) {
  const int64_t rank = x->shape().rank();
  const int64_t count = hlo::Product(x->dimensions(), rank - spatial_rank, rank);
  return count <= std::numeric_limits<int32_t>::max() ? ElementType::kS32 : ElementType::kS64;
}

Value MaxPositions(Builder& b, Value x, const Pooling& p) {
  const ElementType type = x->element_type(), short_type = PositionType(x, p.rank());
  Value positions = FlatPositions(b, short_type, x->dimensions(), p.rank());
  Value none = b.ConstantScalar(short_type, int64_t{-1});
  Value pairs = b.Create(Opcode::kReduceWindow, {x, positions, Lowest(b, type), none},
                         FullWindow(x->shape().rank(), p), {LargerPair(b, type, short_type)});
  return b.Convert(b.GetTupleElement(pairs, 1), ElementType::kS64);
}

// The positions are dead code where only the values are used: they are computed apart.
std::pair<Value, Value> MaxPool(Builder& b, Value x, int64_t rank, const Dimensions& kernel,
                                const Dimensions& stride, const Dimensions& padding,
                                const Dimensions& dilation, bool ceil_mode) {
  Pooling p = MakePooling(x, rank, kernel, stride, padding, dilation, ceil_mode);
  Value values = b.ReduceWindow(x, Lowest(b, x->element_type()), FullWindow(x->shape().rank(), p),
                                b.ScalarCombiner(Opcode::kMaximum, x->element_type()));
  return {values, MaxPositions(b, x, p)};
}

std::pair<Value, Value> MaxPool2d(Builder& b, Value x, Dimensions kernel, Dimensions stride,
                                  Dimensions padding, Dimensions dilation, bool ceil_mode) {
  return MaxPool(b, x, 2, kernel, stride, padding, dilation, ceil_mode);
}
std::pair<Value, Value> MaxPool3d(Builder& b, Value x, Dimensions kernel, Dimensions stride,
                                  Dimensions padding, Dimensions dilation, bool ceil_mode) {
  return MaxPool(b, x, 3, kernel, stride, padding, dilation, ceil_mode);
}

Dimensions Merged(const Dimensions& dimensions, int64_t spatial_rank) {
  int64_t batch = 1, spatial = 1, rank = static_cast<int64_t>(dimensions.size());
  for (int64_t d = 0; d < rank; ++d) (d < rank - spatial_rank ? batch : spatial) *= dimensions[d];
  return {batch, spatial};
}

// Without dilation every window finds its winner again, and the positions are not needed.
Value SelectAndScatter(Builder& b, Value gradient, Value x, const Pooling& p) {
  ElementType type = x->element_type();
  Shape scalar = Shape::Scalar(type);
  // The first of the largest, or the last NaN.
  auto* select = b.Region("select", {scalar, scalar}, [](Builder& r, const Values& q) -> Values {
    Value keep = r.Ge(q[0], q[1]);
    if (!IsFloatValue(q[0])) return {keep};
    return {r.And(r.Or(keep, IsNan(r, q[0])), r.Not(IsNan(r, q[1])))};
  });
  return b.SelectAndScatter(x, gradient, b.Zeros(scalar), FullWindow(x->shape().rank(), p), select,
                            b.ScalarCombiner(Opcode::kAdd, type));
}

Value MaxPoolBackward(Builder& b, int64_t rank, Value gradient, Value x, const Dimensions& kernel,
                      const Dimensions& stride, const Dimensions& padding,
                      const Dimensions& dilation, bool ceil_mode, Value positions) {
  Pooling p = MakePooling(x, rank, kernel, stride, padding, dilation, ceil_mode);
  bool dilated = false;
  for (int64_t d : p.dilation) dilated = dilated || d != 1;
  if (!dilated) return SelectAndScatter(b, gradient, x, p);
  return ScatterToPositions(b, gradient, positions, x->dimensions(), rank, Opcode::kAdd);
}
Value MaxPool2dBackward(Builder& b, Value gradient, Value x, Dimensions kernel, Dimensions stride,
                        Dimensions padding, Dimensions dilation, bool ceil_mode, Value positions) {
  return MaxPoolBackward(b, 2, gradient, x, kernel, stride, padding, dilation, ceil_mode,
                         positions);
}
Value MaxPool3dBackward(Builder& b, Value gradient, Value x, Dimensions kernel, Dimensions stride,
                        Dimensions padding, Dimensions dilation, bool ceil_mode, Value positions) {
  return MaxPoolBackward(b, 3, gradient, x, kernel, stride, padding, dilation, ceil_mode,
                         positions);
}

// An entry of a pooling's argument, which may say one number for all dimensions.
int64_t EntryOf(at::IntArrayRef list, int64_t i) { return list.size() == 1 ? list[0] : list[i]; }

// Whether a window of one dimension lies in the padding alone.
bool HasWindowOfPadding(int64_t size, int64_t windows, int64_t kernel, int64_t stride,
                        int64_t padding, int64_t dilation) {
  for (int64_t window = 0; window < windows; ++window) {
    const int64_t start = window * stride - padding;
    const int64_t before = start < 0 ? (-start + dilation - 1) / dilation : 0;
    if (before >= kernel || start + before * dilation >= size) return true;
  }
  return false;
}

// Of such a window torch's kernels name a position that is not in it, and write the gradient there,
// beyond the image too: a program computes those, which does neither.
void CheckWindowsSeeImage(const at::Tensor& x, const at::Tensor& positions, at::IntArrayRef kernel,
                          at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                          int64_t rank) {
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t d = i - rank;
    TORCH_CHECK(!HasWindowOfPadding(x.size(d), positions.size(d), EntryOf(kernel, i),
                                    EntryOf(stride.empty() ? kernel : stride, i),
                                    EntryOf(padding, i), EntryOf(dilation, i)),
                "a window lies in the padding alone");
  }
}
template <int64_t rank, auto pool>
std::tuple<at::Tensor, at::Tensor> RunMaxPool(const at::Tensor& x, at::IntArrayRef kernel,
                                              at::IntArrayRef stride, at::IntArrayRef padding,
                                              at::IntArrayRef dilation, bool ceil_mode) {
  auto result = pool(x, kernel, stride, padding, dilation, ceil_mode);
  CheckWindowsSeeImage(x, std::get<1>(result), kernel, stride, padding, dilation, rank);
  return result;
}
template <int64_t rank, auto backward>
at::Tensor RunMaxPoolBackward(const at::Tensor& gradient, const at::Tensor& x,
                              at::IntArrayRef kernel, at::IntArrayRef stride,
                              at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode,
                              const at::Tensor& positions) {
  CheckWindowsSeeImage(x, positions, kernel, stride, padding, dilation, rank);
  return backward(gradient, x, kernel, stride, padding, dilation, ceil_mode, positions);
}

Value MaxUnpool(Builder& b, Value x, Value positions, int64_t rank, const Dimensions& output) {
  Dimensions dimensions = x->dimensions();
  const int64_t before = x->shape().rank() - rank;
  if (std::cmp_not_equal(output.size(), rank) || (before != 1 && before != 2)) {
    throw hlo::Error("Input to max_unpooling" + std::to_string(rank) + "d should be a " +
                     std::to_string(rank + 1) + "d or " + std::to_string(rank + 2) +
                     "d Tensor, but got a tensor with " + std::to_string(x->shape().rank()) +
                     " dimensions.");
  }
  if (positions->dimensions() != dimensions) {
    throw hlo::Error(c10::str("Expected shape of indices to be same as that of the input tensor (",
                              at::IntArrayRef(dimensions), ") but got indices tensor with shape: ",
                              at::IntArrayRef(positions->dimensions())));
  }
  std::copy(output.begin(), output.end(), dimensions.end() - rank);
  std::string sizes;
  for (int64_t size : output) sizes += (sizes.empty() ? "" : "x") + std::to_string(size);
  CheckBounds(
      b, positions, Positions(NumElements(output, AllDimensions(rank))),
      {kRuntimeError, "Found an invalid max index: {} (output volumes are of size " + sizes + ")"});
  return ScatterToPositions(b, x, positions, dimensions, rank, Opcode::kOr);
}
Value MaxUnpool2d(Builder& b, Value x, Value positions, Dimensions output) {
  return MaxUnpool(b, x, positions, 2, output);
}
Value MaxUnpool3d(Builder& b, Value x, Value positions, Dimensions output, Dimensions stride,
                  Dimensions padding) {
  return MaxUnpool(b, x, positions, 3, output);
}

// --- Average

// How many elements each window's mean divides by, of shape [1, …, output sizes]; padding counts as
// far as the declared padding reaches when include_padding.
Value WindowCounts(Builder& b, Value x, const Pooling& p, bool include_padding) {
  int64_t rank = x->shape().rank();
  Dimensions ones(rank, 1);
  Pooling counted = p;
  for (int64_t i = 0; i < p.rank(); ++i) {
    int64_t size = SpatialSize(x, p, i);
    ones[rank - p.rank() + i] = include_padding ? size + 2 * p.padding[i] : size;
    if (include_padding) {
      counted.padding[i] = 0;
      counted.padding_high[i] = p.padding_high[i] - p.padding[i];
    }
  }
  return SumWindows(b, b.Full(Shape(x->element_type(), ones), 1.0), counted);
}

Value DividedByCounts(Builder& b, Value value, Value x, const Pooling& p, bool include_padding,
                      std::optional<int64_t> divisor) {
  if (divisor && *divisor == 0) throw hlo::Error("divisor must be not zero");
  bool uniform = true;
  for (int64_t i = 0; i < p.rank(); ++i) {
    bool inside = include_padding ? p.padding_high[i] <= p.padding[i]
                                  : p.padding[i] == 0 && p.padding_high[i] <= 0;
    uniform = uniform && inside;
  }
  if (divisor || uniform) {
    double count = divisor ? static_cast<double>(*divisor) : 1;
    for (int64_t k : p.kernel) count *= divisor ? 1 : static_cast<double>(k);
    if (IsIntegral(value)) return b.Divide(value, Like(b, value, count));
    return b.Multiply(value, Like(b, value, 1 / count));
  }
  Value counts = WindowCounts(b, x, p, include_padding);
  return b.Divide(value, b.BroadcastTo(counts, value->dimensions()));
}

Value AveragePool(Builder& b, int64_t rank, Value x, const Dimensions& kernel,
                  const Dimensions& stride, const Dimensions& padding, bool ceil_mode,
                  bool include_padding, std::optional<int64_t> divisor) {
  ElementType type = x->element_type();
  x = ToAccumulation(b, x);
  Pooling p = MakePooling(x, rank, kernel, stride, padding, {1}, ceil_mode);
  Value sums = SumWindows(b, x, p);
  return b.Convert(DividedByCounts(b, sums, x, p, include_padding, divisor), type);
}

// Of windows side by side with so few elements, sums of windows take less than what moves them.
constexpr int64_t kFewElements = 36;

// What each window has, at each of its elements, where windows stand side by side; zero elsewhere.
Value SpreadSideBySide(Builder& b, Value windows, const Dimensions& dimensions, const Pooling& p) {
  const int64_t rank = std::ssize(dimensions), first = rank - p.rank();
  Dimensions split, places, joined(dimensions.begin(), dimensions.begin() + first);
  Dimensions low(rank, 0), high(rank, 0);
  for (int64_t d = 0; d < rank; ++d) {
    places.push_back(std::ssize(split));
    split.push_back(windows->shape().dimension(d));
    if (d < first) continue;
    const int64_t size = p.kernel[d - first];
    split.push_back(size);
    joined.push_back(windows->shape().dimension(d) * size);
    low[d] = -p.padding[d - first];
    high[d] = dimensions[d] - low[d] - joined[d];
  }
  Value spread = b.Reshape(b.BroadcastInDim(windows, split, places), joined);
  Value zero = b.Zeros(Shape::Scalar(windows->element_type()));
  return b.Pad(spread, zero, low, high, Dimensions(rank, 0));
}

// Each gradient is spread over its window: the gradients, as far apart as the stride, summed in
// windows of the kernel's size.
Value AveragePoolBackward(Builder& b, int64_t rank, Value gradient, Value x,
                          const Dimensions& kernel, const Dimensions& stride,
                          const Dimensions& padding, bool ceil_mode, bool include_padding,
                          std::optional<int64_t> divisor) {
  ElementType type = x->element_type();
  gradient = ToAccumulation(b, gradient);
  Pooling p = MakePooling(x, rank, kernel, stride, padding, {1}, ceil_mode);
  gradient = DividedByCounts(b, gradient, ToAccumulation(b, x), p, include_padding, divisor);
  if (p.stride == p.kernel && hlo::Product(p.kernel) > kFewElements) {
    return b.Convert(SpreadSideBySide(b, gradient, x->dimensions(), p), type);
  }
  hlo::Window window = hlo::Window::Trivial(x->shape().rank());
  for (int64_t i = 0; i < rank; ++i) {
    int64_t d = x->shape().rank() - rank + i;
    int64_t spread = (gradient->shape().dimension(d) - 1) * p.stride[i] + 1;
    window.dimensions[d] = p.kernel[i];
    window.base_dilations[d] = p.stride[i];
    window.padding_low[d] = p.kernel[i] - 1 - p.padding[i];
    window.padding_high[d] = x->shape().dimension(d) + p.padding[i] - spread;
  }
  Value zero = b.Zeros(Shape::Scalar(gradient->element_type()));
  Value sums = b.ReduceWindow(gradient, zero, window,
                              b.ScalarCombiner(Opcode::kAdd, gradient->element_type()));
  return b.Convert(sums, type);
}

template <int64_t rank>
Value AveragePoolOf(Builder& b, Value x, Dimensions kernel, Dimensions stride, Dimensions padding,
                    bool ceil_mode, bool include_padding, std::optional<int64_t> divisor) {
  return AveragePool(b, rank, x, kernel, stride, padding, ceil_mode, include_padding, divisor);
}
template <int64_t rank>
Value AveragePoolOfBackward(Builder& b, Value gradient, Value x, Dimensions kernel,
                            Dimensions stride, Dimensions padding, bool ceil_mode,
                            bool include_padding, std::optional<int64_t> divisor) {
  return AveragePoolBackward(b, rank, gradient, x, kernel, stride, padding, ceil_mode,
                             include_padding, divisor);
}
// --- Adaptive

// Window i of n over `size` elements: [floor(i * size / n), ceil((i + 1) * size / n)).
int64_t WindowStart(int64_t i, int64_t size, int64_t n) { return i * size / n; }
int64_t WindowEnd(int64_t i, int64_t size, int64_t n) { return hlo::CeilDivide((i + 1) * size, n); }

// Of no elements there is neither a mean nor a maximum. Eager asks it of the dimensions from
// `first` on.
void RequireElements(Value x, int64_t first, const char* name) {
  for (int64_t d = first; d < x->shape().rank(); ++d) {
    if (x->shape().dimension(d) > 0) continue;
    throw hlo::Error(std::string(name) + ": expected no dimension of size zero, but got " +
                     x->shape().ToString());
  }
}

// One size of the result for each of the spatial dimensions, with a channel and maybe a batch
// dimension before them.
void CheckAdaptive(Value x, const Dimensions& output, const std::string& name) {
  const int64_t rank = static_cast<int64_t>(output.size());
  const int64_t before = x->shape().rank() - rank;
  const bool has_sizes = std::ranges::none_of(output, [](int64_t n) { return n < 0; });
  if (has_sizes && (before == 1 || before == 2)) return;
  throw hlo::Error(name + ": expected " + std::to_string(rank + 1) + " or " +
                   std::to_string(rank + 2) + " dimensions and sizes of the result, but got " +
                   x->shape().ToString() + " and " + hlo::ToString(output));
}

// Each of n outputs averages its window.
Resampling Averages(int64_t size, int64_t n) {
  Resampling r{.input_size = size, .outputs = {}, .has_fewer_taps = true};
  for (int64_t i = 0; i < n; ++i) {
    int64_t start = WindowStart(i, size, n), end = WindowEnd(i, size, n);
    r.outputs.emplace_back();
    for (int64_t k = start; k < end; ++k) {
      r.outputs.back().push_back({k, 1.0 / static_cast<double>(end - start)});
    }
  }
  return r;
}

// Of all spatial dimensions of an input.
std::vector<Resampling> AllAverages(const Dimensions& input, const Dimensions& output) {
  std::vector<Resampling> all;
  size_t first = input.size() - output.size();
  for (size_t i = 0; i < output.size(); ++i) all.push_back(Averages(input[first + i], output[i]));
  return all;
}

bool Divides(Value x, const Dimensions& output) {
  int64_t first = x->shape().rank() - static_cast<int64_t>(output.size());
  for (size_t i = 0; i < output.size(); ++i) {
    if (output[i] == 0 || x->shape().dimension(first + i) % output[i] != 0) return false;
  }
  return true;
}

// The shape with each spatial dimension split into [windows, window size], and which are the sizes.
std::pair<Dimensions, Dimensions> SplitWindows(const Dimensions& dimensions,
                                               const Dimensions& output) {
  Dimensions split, sizes;
  size_t first = dimensions.size() - output.size();
  for (size_t d = 0; d < dimensions.size(); ++d) {
    if (d < first) {
      split.push_back(dimensions[d]);
      continue;
    }
    split.push_back(output[d - first]);
    split.push_back(dimensions[d] / output[d - first]);
    sizes.push_back(static_cast<int64_t>(split.size()) - 1);
  }
  return {split, sizes};
}

Value AdaptiveAveragePool(Builder& b, Value x, Dimensions output) {
  CheckAdaptive(x, output, "adaptive_avg_pool");
  RequireElements(x, x->shape().rank() - static_cast<int64_t>(output.size()), "adaptive_avg_pool");
  ElementType type = x->element_type();
  x = ToAccumulation(b, x);
  if (Divides(x, output)) {
    auto [split, sizes] = SplitWindows(x->dimensions(), output);
    return b.Convert(Mean(b, b.Reshape(x, split), sizes), type);
  }
  int64_t first = x->shape().rank() - static_cast<int64_t>(output.size());
  return b.Convert(Resample(b, x, first, AllAverages(x->dimensions(), output)), type);
}

Value AdaptiveAveragePoolBackward(Builder& b, Value gradient, Value x, int64_t rank) {
  ElementType type = x->element_type();
  gradient = ToAccumulation(b, gradient);
  Dimensions output(gradient->dimensions().end() - rank, gradient->dimensions().end());
  if (Divides(x, output)) {
    auto [split, sizes] = SplitWindows(x->dimensions(), output);
    double count = static_cast<double>(NumElements(split, sizes));
    Value share = b.Multiply(gradient, Like(b, gradient, 1 / count));
    return b.Convert(b.Reshape(BroadcastReduced(b, share, sizes, split), x->dimensions()), type);
  }
  std::vector<Resampling> all = AllAverages(x->dimensions(), output);
  for (Resampling& r : all) r = Transposed(r);
  return b.Convert(Resample(b, gradient, x->shape().rank() - rank, all), type);
}
template <int64_t rank>
Value AdaptiveAveragePoolOfBackward(Builder& b, Value gradient, Value x) {
  return AdaptiveAveragePoolBackward(b, gradient, x, rank);
}

// Windows that divide the input are a reshape; the general ones are folded one dimension and one
// output element at a time.
template <int64_t rank>
std::pair<Value, Value> AdaptiveMaxPool(Builder& b, Value x, Dimensions output) {
  if (static_cast<int64_t>(output.size()) != rank) {
    throw hlo::Error("adaptive_max_pool" + std::to_string(rank) + "d(): output_size must have " +
                     std::to_string(rank) + " entries, got " + hlo::ToString(output));
  }
  CheckAdaptive(x, output, "adaptive_max_pool");
  RequireElements(x, 1, "adaptive_max_pool");
  Value positions = FlatPositions(b, PositionType(x, rank), x->dimensions(), rank);
  int64_t first = x->shape().rank() - rank;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t d = first + i, size = x->shape().dimension(d);
    Values values, indices;
    for (int64_t k = 0; k < output[i]; ++k) {
      int64_t start = WindowStart(k, size, output[i]), end = WindowEnd(k, size, output[i]);
      Value window = b.SliceInDim(x, d, start, end);
      Value places = b.SliceInDim(positions, d, start, end);
      auto [value, index] = LargestWithPosition(b, window, places, {d});
      Dimensions kept = KeepDimensions(window->dimensions(), {d});
      values.push_back(b.Reshape(value, kept));
      indices.push_back(b.Reshape(index, kept));
    }
    x = values.empty() ? b.SliceInDim(x, d, 0, 0) : b.Concatenate(values, d);
    positions = indices.empty() ? b.SliceInDim(positions, d, 0, 0) : b.Concatenate(indices, d);
  }
  return {x, b.Convert(positions, ElementType::kS64)};
}
template <int64_t rank>
Value AdaptiveMaxPoolBackward(Builder& b, Value gradient, Value x, Value positions) {
  return ScatterToPositions(b, gradient, positions, x->dimensions(), rank, Opcode::kAdd);
}

}  // namespace

Value ScatterToPositions(Builder& b, Value gradient, Value positions, const Dimensions& dimensions,
                         int64_t spatial_rank, Opcode combiner) {
  Dimensions from = Merged(gradient->dimensions(), spatial_rank);
  Dimensions to = Merged(dimensions, spatial_rank);
  hlo::ScatterAttributes attributes;
  attributes.inserted_window_dims = {1};
  attributes.input_batching_dims = {0};
  attributes.scatter_indices_batching_dims = {0};
  attributes.scatter_dims_to_operand_dims = {1};
  attributes.index_vector_dim = 2;
  ElementType type = gradient->element_type();
  Value scattered =
      b.Scatter(b.Zeros(Shape(type, to)), b.Reshape(positions, {from[0], from[1], 1}),
                b.Reshape(gradient, from),
                combiner == Opcode::kAdd
                    ? b.ScalarCombiner(Opcode::kAdd, type)
                    : b.Region("second", {Shape::Scalar(type), Shape::Scalar(type)},
                               [](Builder&, const Values& p) -> Values { return {p[1]}; }),
                attributes);
  return b.Reshape(scattered, dimensions);
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&MaxPool2d>(&RunMaxPool<2, &at::max_pool2d_with_indices>);
  RunBy<&MaxPool3d>(&RunMaxPool<3, &at::max_pool3d_with_indices>);
  RunBy<&MaxPool2dBackward>(&RunMaxPoolBackward<2, &at::max_pool2d_with_indices_backward>);
  RunBy<&MaxPool3dBackward>(&RunMaxPoolBackward<3, &at::max_pool3d_with_indices_backward>);
  Register<&MaxPool2d>(m, "max_pool2d_with_indices");
  Register<&MaxPool2dBackward>(m, "max_pool2d_with_indices_backward");
  Register<&MaxPool3d>(m, "max_pool3d_with_indices");
  Register<&MaxPool3dBackward>(m, "max_pool3d_with_indices_backward");
  Register<&MaxUnpool2d>(m, "max_unpool2d");
  Register<&MaxUnpool3d>(m, "max_unpool3d");
  Register<&AveragePoolOf<2>>(m, "avg_pool2d");
  Register<&AveragePoolOfBackward<2>>(m, "avg_pool2d_backward");
  Register<&AveragePoolOf<3>>(m, "avg_pool3d");
  Register<&AveragePoolOfBackward<3>>(m, "avg_pool3d_backward");
  Register<&Twin<2, &AdaptiveAveragePool>::Lower>(m, "_adaptive_avg_pool2d");
  Register<&AdaptiveAveragePoolOfBackward<2>>(m, "_adaptive_avg_pool2d_backward");
  Register<&Twin<3, &AdaptiveAveragePool>::Lower>(m, "_adaptive_avg_pool3d");
  Register<&AdaptiveAveragePoolOfBackward<3>>(m, "_adaptive_avg_pool3d_backward");
  Register<&AdaptiveMaxPool<2>>(m, "adaptive_max_pool2d");
  Register<&AdaptiveMaxPoolBackward<2>>(m, "adaptive_max_pool2d_backward");
  Register<&AdaptiveMaxPool<3>>(m, "adaptive_max_pool3d");
  Register<&AdaptiveMaxPoolBackward<3>>(m, "adaptive_max_pool3d_backward");
  // torch's kernels check no index: out of range they write beyond their results.
  lazy::Op<&MaxPool2dBackward>::kind().eager_form = nullptr;
  lazy::Op<&MaxPool3dBackward>::kind().eager_form = nullptr;
  lazy::Op<&MaxUnpool2d>::kind().eager_form = nullptr;
  lazy::Op<&MaxUnpool3d>::kind().eager_form = nullptr;
  lazy::Op<&AdaptiveMaxPoolBackward<2>>::kind().eager_form = nullptr;
  lazy::Op<&AdaptiveMaxPoolBackward<3>>::kind().eager_form = nullptr;
}

}  // namespace torch_xla
