// Maxima of windows that lie at random places, about evenly over each spatial dimension.
#include <ATen/ops/fractional_max_pool2d_backward_meta.h>
#include <ATen/ops/fractional_max_pool2d_meta.h>
#include <ATen/ops/fractional_max_pool3d_meta.h>

#include "aten/dimension.h"
#include "aten/indexing.h"
#include "aten/op.h"
#include "aten/pooling.h"
#include "aten/reduction.h"
#include "aten/structured_check.h"

namespace torch_xla {
namespace {

// Where the windows of a dimension start, [batch, channels, output]: in steps of about
// (size - window) / (output - 1), shifted by the sample; the last one ends at the input's end.
Value WindowStarts(Builder& b, Value sample, int64_t size, int64_t output, int64_t window) {
  Dimensions dimensions = sample->dimensions();
  dimensions.push_back(output);
  Value last = b.Full(Shape(ElementType::kS64, dimensions), size - window);
  if (output == 1) return last;
  Value shift = BroadcastReduced(b, sample, {2}, dimensions);
  Value step = b.Divide(Like(b, shift, static_cast<double>(size - window)),
                        Like(b, shift, static_cast<double>(output - 1)));
  Value which = Iota(b, dimensions, 2);
  Value place = b.Multiply(b.Add(b.Convert(which, shift->element_type()), shift), step);
  Value start = b.Subtract(b.Convert(place, ElementType::kS64),
                           b.Convert(b.Multiply(shift, step), ElementType::kS64));
  return b.Select(b.Eq(which, Like(b, which, static_cast<double>(output - 1))), last, start);
}

// The flat spatial position of each element of each window: [batch, channels, output sizes…, window
// sizes…].
Value WindowPositions(Builder& b, Value samples, const Dimensions& sizes, const Dimensions& output,
                      const Dimensions& window) {
  int64_t rank = static_cast<int64_t>(sizes.size());
  Dimensions full(samples->dimensions().begin(), samples->dimensions().begin() + 2);
  Dimensions sample_dimensions = full;
  full.insert(full.end(), output.begin(), output.end());
  full.insert(full.end(), window.begin(), window.end());
  Value flat = b.Zeros(Shape(ElementType::kS64, full));
  for (int64_t i = 0; i < rank; ++i) {
    // The samples stand in the order width, height for two dimensions, else as the dimensions.
    int64_t place = rank == 2 ? 1 - i : i;
    Value sample = b.Reshape(b.SliceInDim(samples, 2, place, place + 1), sample_dimensions);
    Value start = WindowStarts(b, sample, sizes[i], output[i], window[i]);
    Value position =
        b.Add(b.BroadcastInDim(start, full, {0, 1, 2 + i}), Iota(b, full, 2 + rank + i));
    flat = b.Add(b.Multiply(flat, Like(b, flat, static_cast<double>(sizes[i]))), position);
  }
  return flat;
}

// Torch's kernels look at neither.
void RequireWindow(Value x, const Dimensions& window) {
  if (hlo::IsComplex(x->element_type())) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented, "complex numbers have no order");
  }
  if (std::ranges::all_of(window, [](int64_t n) { return n > 0; })) return;
  throw hlo::Error("kernel sizes should be greater than zero, but are " + hlo::ToString(window));
}

template <int64_t rank>
std::pair<Value, Value> FractionalMaxPool(Builder& b, Value x, Dimensions window, Dimensions output,
                                          Value samples) {
  RequireWindow(x, window);
  const Dimensions& input = x->dimensions();
  Dimensions sizes(input.end() - rank, input.end()), pooled(input.begin(), input.end() - rank);
  pooled.insert(pooled.end(), output.begin(), output.end());
  // There may be samples for more images than these.
  int64_t batch = x->shape().rank() == rank + 2 ? input[0] : 1;
  samples = b.SliceInDim(samples, 0, 0, batch);
  Value positions = WindowPositions(b, samples, sizes, output, window);
  Dimensions full = positions->dimensions();
  Dimensions merged = {full[0], full[1], NumElements(sizes, AllDimensions(rank))};
  Dimensions gathered = {
      full[0], full[1],
      NumElements(output, AllDimensions(rank)) * NumElements(window, AllDimensions(rank))};
  Value values = GatherAlong(b, b.Reshape(x, merged), b.Reshape(positions, gathered), 2);
  Dimensions reduced;
  for (int64_t i = 0; i < rank; ++i) reduced.push_back(2 + rank + i);
  Value none = b.ConstantScalar(ElementType::kS64, int64_t{-1});
  Value pairs =
      b.ReduceVariadic({b.Reshape(values, full), positions}, {Lowest(b, x->element_type()), none},
                       reduced, LargerPair(b, x->element_type(), ElementType::kS64));
  return {b.Reshape(b.GetTupleElement(pairs, 0), pooled),
          b.Reshape(b.GetTupleElement(pairs, 1), pooled)};
}

template <int64_t rank>
Value FractionalMaxPoolBackward(Builder& b, Value gradient, Value x, Value positions) {
  return ScatterToPositions(b, gradient, positions, x->dimensions(), rank, Opcode::kAdd);
}

std::tuple<at::Tensor, at::Tensor> Pool2d(const at::Tensor& x, at::IntArrayRef window,
                                          at::IntArrayRef output, const at::Tensor& samples) {
  CheckArguments<at::meta::structured_fractional_max_pool2d>(x, window, output, samples);
  return Record<&FractionalMaxPool<2>>(x, window, output, samples);
}
std::tuple<at::Tensor, at::Tensor> Pool3d(const at::Tensor& x, at::IntArrayRef window,
                                          at::IntArrayRef output, const at::Tensor& samples) {
  CheckArguments<at::meta::structured_fractional_max_pool3d>(x, window, output, samples);
  return Record<&FractionalMaxPool<3>>(x, window, output, samples);
}

at::Tensor Pool2dBackward(const at::Tensor& gradient, const at::Tensor& x, at::IntArrayRef window,
                          at::IntArrayRef output, const at::Tensor& positions) {
  CheckArguments<at::meta::structured_fractional_max_pool2d_backward>(gradient, x, window, output,
                                                                      positions);
  return Record<&FractionalMaxPoolBackward<2>>(gradient, x, positions);
}
at::Tensor Pool3dBackward(const at::Tensor& gradient, const at::Tensor& x, at::IntArrayRef window,
                          at::IntArrayRef output, const at::Tensor& positions) {
  TORCH_CHECK(gradient.sizes() == positions.sizes(),
              "fractional_max_pool3d_backward(): gradient of shape ", gradient.sizes(),
              " for indices of shape ", positions.sizes());
  return Record<&FractionalMaxPoolBackward<3>>(gradient, x, positions);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("fractional_max_pool2d", &Pool2d);
  m.impl("fractional_max_pool2d_backward", &Pool2dBackward);
  m.impl("fractional_max_pool3d", &Pool3d);
  m.impl("fractional_max_pool3d_backward", &Pool3dBackward);
}

}  // namespace torch_xla
