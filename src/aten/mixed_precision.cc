// What GradScaler calls: unscaling gradients with a check for infinities, and
// the scale's own growth.
#include "aten/dimension.h"
#include "aten/op.h"

namespace torch_xla {
namespace {

Value Unscale(Builder& b, Value gradient, Value inverse_scale) {
  Value factor = b.Convert(b.Reshape(inverse_scale, {}), gradient->element_type());
  return b.Multiply(gradient, Splat(b, factor, gradient->dimensions()));
}

// 1 if it was so before or any element is infinite or NaN.
Value FoundInfinity(Builder& b, Value found, Value gradient) {
  Value finite = b.Unary(Opcode::kIsFinite, gradient);
  Value all_finite = b.Reduce(Opcode::kAnd, finite, AllDimensions(gradient->shape().rank()));
  Value now = b.Convert(b.Not(all_finite), found->element_type());
  return b.Maximum(found, b.BroadcastTo(now, found->dimensions()));
}

void CheckAndUnscale(at::TensorList gradients, at::Tensor& found, const at::Tensor& inverse_scale) {
  for (const at::Tensor& gradient : gradients) {
    WriteInto(found, Record<&FoundInfinity>(found, gradient));
    WriteInto(gradient, Record<&Unscale>(gradient, inverse_scale));
  }
}

// After an infinity the scale shrinks and the count starts anew; after
// `interval` steps without, it grows.
std::pair<Value, Value> NextScale(Builder& b, Value scale, Value tracker, Value found,
                                  double growth, double backoff, int64_t interval) {
  Value bad = b.Reshape(b.Gt(found, Like(b, found, 0)), scale->dimensions());
  Value next = b.Add(tracker, b.Full(tracker->shape(), int64_t{1}));
  Value due = b.Eq(next, b.Full(tracker->shape(), interval));
  Value grown = b.Multiply(scale, Like(b, scale, growth));
  Value can_grow = b.And(due, b.Unary(Opcode::kIsFinite, grown));
  Value good_scale = b.Select(can_grow, grown, scale);
  Value good_tracker = b.Select(due, b.Zeros(tracker->shape()), next);
  return {b.Select(bad, b.Multiply(scale, Like(b, scale, backoff)), good_scale),
          b.Select(bad, b.Zeros(tracker->shape()), good_tracker)};
}

at::Tensor& UpdateScale(at::Tensor& scale, at::Tensor& tracker, const at::Tensor& found,
                        double growth, double backoff, int64_t interval) {
  auto [next_scale, next_tracker] =
      Record<&NextScale>(scale, tracker, found, growth, backoff, interval);
  WriteInto(scale, next_scale);
  WriteInto(tracker, next_tracker);
  return scale;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("_amp_foreach_non_finite_check_and_unscale_", &CheckAndUnscale);
  m.impl("_amp_update_scale_", &UpdateScale);
}

}  // namespace torch_xla
