// Maxima of windows that lie at random places, about evenly over each spatial dimension.
#include <ATen/ops/fractional_max_pool2d_backward_meta.h>
#include <ATen/ops/fractional_max_pool2d_meta.h>
#include <ATen/ops/fractional_max_pool3d_meta.h>

#include <limits>

#include "aten/dimension.h"
#include "aten/indexing.h"
#include "aten/op.h"
#include "aten/pooling.h"
#include "aten/reduction.h"
#include "aten/refused_types.h"
#include "aten/structured_check.h"

namespace torch_xla {
namespace {

// Of positions among so many elements: vectors have twice as many numbers of 32 bits.
ElementType PositionType(int64_t elements) {
  return elements <= std::numeric_limits<int32_t>::max() ? ElementType::kS32 : ElementType::kS64;
}

// Where the windows of a dimension start, [batch, channels, output]: in steps of about
// (size - window) / (output - 1), shifted by the sample; the last one ends at the input's end.
Value WindowStarts(Builder& b, Value sample, int64_t size, int64_t output, int64_t window,
                   ElementType type) {
  Dimensions dimensions = sample->dimensions();
  dimensions.push_back(output);
  Value last = b.Full(Shape(type, dimensions), size - window);
  if (output == 1) return last;
  Value shift = BroadcastReduced(b, sample, {2}, dimensions);
  Value step = b.Divide(Like(b, shift, static_cast<double>(size - window)),
                        Like(b, shift, static_cast<double>(output - 1)));
  Value which = Iota(b, dimensions, 2, type);
  Value place = b.Multiply(b.Add(b.Convert(which, shift->element_type()), shift), step);
  Value start = b.Subtract(b.Convert(place, type), b.Convert(b.Multiply(shift, step), type));
  return b.Select(b.Eq(which, Like(b, which, static_cast<double>(output - 1))), last, start);
}

// The flat spatial position of each element of each window: [window sizes…, batch, channels, output
// sizes…]. The windows' elements stand first, so that vectors hold one of each of many windows.
Value WindowPositions(Builder& b, Value samples, const Dimensions& sizes, const Dimensions& output,
                      const Dimensions& window, ElementType type) {
  int64_t rank = static_cast<int64_t>(sizes.size());
  const Dimensions images(samples->dimensions().begin(), samples->dimensions().begin() + 2);
  Dimensions full = window;
  full.insert(full.end(), images.begin(), images.end());
  full.insert(full.end(), output.begin(), output.end());
  Value flat = b.Zeros(Shape(type, full));
  for (int64_t i = 0; i < rank; ++i) {
    // The samples stand in the order width, height for two dimensions, else as the dimensions.
    int64_t place = rank == 2 ? 1 - i : i;
    Value sample = b.Reshape(b.SliceInDim(samples, 2, place, place + 1), images);
    Value start = WindowStarts(b, sample, sizes[i], output[i], window[i], type);
    Value position = b.Add(b.BroadcastInDim(start, full, {rank, rank + 1, rank + 2 + i}),
                           Iota(b, full, i, type));
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
  const int64_t elements = x->shape().num_elements();
  if (elements == 0) {
    return {b.Zeros(Shape(x->element_type(), pooled)), b.Zeros(Shape(ElementType::kS64, pooled))};
  }
  const ElementType type = PositionType(elements);
  Value positions = WindowPositions(b, samples, sizes, output, window, type);
  const Dimensions& full = positions->dimensions();
  Value image = b.Add(b.Multiply(Iota(b, full, rank, type),
                                 Like(b, positions, static_cast<double>(full[rank + 1]))),
                      Iota(b, full, rank + 1, type));
  const int64_t pixels = NumElements(sizes, AllDimensions(rank));
  Value place = b.Add(b.Multiply(image, Like(b, image, static_cast<double>(pixels))), positions);
  Value values = TakeRows(b, b.Reshape(x, {elements}), place);
  auto [largest, where] = LargestWithPosition(b, values, positions, AllDimensions(rank));
  return {b.Reshape(largest, pooled), b.Convert(b.Reshape(where, pooled), ElementType::kS64)};
}

template <int64_t rank>
Value FractionalMaxPoolBackward(Builder& b, Value gradient, Value x, Value positions) {
  return ScatterToPositions(b, gradient, positions, x->dimensions(), rank, Opcode::kAdd);
}

void CheckSamples(const at::Tensor& x, const at::Tensor& samples, const char* kernel) {
  TORCH_CHECK(samples.scalar_type() == x.scalar_type(),
              "Expect _random_samples to have the same dtype as input");
  CheckKernel(!at::isIntegralType(x.scalar_type(), true) || x.numel() == 0, kernel,
              x.scalar_type());
}

std::tuple<at::Tensor, at::Tensor> Pool2d(const at::Tensor& x, at::IntArrayRef window,
                                          at::IntArrayRef output, const at::Tensor& samples) {
  CheckArguments<at::meta::structured_fractional_max_pool2d>(x, window, output, samples);
  CheckSamples(x, samples, "fractional_max_pool2d_out_frame");
  return Record<&FractionalMaxPool<2>>(x, window, output, samples);
}
std::tuple<at::Tensor, at::Tensor> Pool3d(const at::Tensor& x, at::IntArrayRef window,
                                          at::IntArrayRef output, const at::Tensor& samples) {
  CheckArguments<at::meta::structured_fractional_max_pool3d>(x, window, output, samples);
  CheckSamples(x, samples, "fractional_max_pool3d_out_frame");
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
