// Losses and their gradients.
#include <c10/util/StringUtil.h>

#include <tuple>

#include "aten/broadcast.h"
#include "aten/constant.h"
#include "aten/dimension.h"
#include "aten/dtype.h"
#include "aten/elementwise.h"
#include "aten/indexing.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "aten/twin.h"
#include "aten/value_check.h"

namespace torch_xla {
namespace {

enum Reduction : int64_t { kNoReduction = 0, kMeanReduction = 1, kSumReduction = 2 };

Value Reduce(Builder& b, Value loss, int64_t reduction) {
  Dimensions all = AllDimensions(loss->shape().rank());
  if (reduction == kMeanReduction) return Mean(b, loss, all);
  return reduction == kSumReduction ? Sum(b, loss, all) : loss;
}

// The slope for each element times the incoming gradient, divided by the count for a mean.
// Transforms of functions give a batch of gradients for one slope.
Value TimesGradient(Builder& b, Value slope, Value gradient, int64_t reduction) {
  const double count = static_cast<double>(slope->shape().num_elements());
  auto [factor, spread] = Broadcast(b, slope, gradient);
  if (reduction == kMeanReduction) spread = b.Multiply(spread, Like(b, spread, 1 / count));
  return b.Multiply(factor, spread);
}

// Two operands of a loss: one type, one shape.
std::pair<Value, Value> InCommonType(Builder& b, Value x, Value y) {
  Values pair = {x, y};
  PromoteAll(b, pair);
  BroadcastAll(b, pair);
  return {pair[0], pair[1]};
}

// What `loss` makes of them in the accumulation type, rounded once, as in eager.
template <typename Loss>
Value Rounded(Builder& b, Value x, Value y, const Loss& loss) {
  auto [a, c] = InCommonType(b, x, y);
  return b.Convert(loss(ToAccumulation(b, a), ToAccumulation(b, c)), a->element_type());
}

// --- Regression

Value MseLoss(Builder& b, Value x, Value y, int64_t reduction) {
  auto [a, c] = InCommonType(b, x, y);
  Value difference = b.Subtract(a, c);
  return Reduce(b, b.Multiply(difference, difference), reduction);
}
Value MseLossBackward(Builder& b, Value gradient, Value x, Value y, int64_t reduction) {
  auto [a, c] = InCommonType(b, x, y);
  Value difference = b.Subtract(a, c);
  return TimesGradient(b, b.Add(difference, difference), gradient, reduction);
}

// delta = 0 is the absolute difference.
Value SmoothL1Loss(Builder& b, Value x, Value y, int64_t reduction, double beta) {
  Value loss = Rounded(b, x, y, [&](Value a, Value c) {
    Value z = b.Abs(b.Subtract(a, c));
    if (beta == 0) return z;
    Value square = b.Multiply(b.Multiply(z, z), Like(b, z, 0.5 / beta));
    Value linear = b.Subtract(z, Like(b, z, 0.5 * beta));
    return b.Select(b.Lt(z, Like(b, z, beta)), square, linear);
  });
  return Reduce(b, loss, reduction);
}
Value SmoothL1LossBackward(Builder& b, Value gradient, Value x, Value y, int64_t reduction,
                           double beta) {
  return Rounded(b, x, y, [&](Value a, Value c) {
    Value z = b.Subtract(a, c);
    Value slope = b.Unary(Opcode::kSign, z);
    if (beta != 0) {
      slope = b.Clamp(Like(b, z, -1), b.Multiply(z, Like(b, z, 1 / beta)), Like(b, z, 1));
    }
    return TimesGradient(b, slope, ToAccumulation(b, gradient), reduction);
  });
}

// Of x's type, whatever y's, as in eager.
Value HuberLoss(Builder& b, Value x, Value y, int64_t reduction, double delta) {
  if (!(delta > 0)) {
    throw hlo::Error("huber_loss does not support non-positive values for delta.");
  }
  auto [a, c] = InCommonType(b, x, y);
  Value z = b.Abs(b.Subtract(a, c));
  Value square = b.Multiply(b.Multiply(z, z), Like(b, z, 0.5));
  Value linear = b.Multiply(b.Subtract(z, Like(b, z, 0.5 * delta)), Like(b, z, delta));
  Value loss = b.Select(b.Le(z, Like(b, z, delta)), square, linear);
  return Reduce(b, b.Convert(loss, x->element_type()), reduction);
}
Value HuberLossBackward(Builder& b, Value gradient, Value x, Value y, int64_t reduction,
                        double delta) {
  auto [a, c] = InCommonType(b, x, y);
  Value z = b.Subtract(a, c);
  Value slope = b.Clamp(Like(b, z, -delta), z, Like(b, z, delta));
  return b.Convert(TimesGradient(b, slope, gradient, reduction), x->element_type());
}

// --- Binary cross entropy

// Logarithms are bounded at -100, so that a wrong certainty costs much but not infinity.
Value BoundedLog(Builder& b, Value x) { return b.Maximum(b.Log(x), Like(b, x, -100)); }

Value Weighted(Builder& b, Value loss, const std::optional<Value>& weight) {
  return weight ? b.Multiply(loss, b.BroadcastTo(*weight, loss->dimensions())) : loss;
}

// NaN is no probability, as in eager.
void CheckProbabilities(Builder& b, Value x, const char* words) {
  if (!ChecksValues(b)) return;
  Value right = b.And(b.Ge(x, Like(b, x, 0)), b.Le(x, Like(b, x, 1)));
  CheckNone(b, b.Not(right), {kRuntimeError, words});
}

Value BinaryCrossEntropy(Builder& b, Value x, Value target, std::optional<Value> weight,
                         int64_t reduction) {
  CheckProbabilities(b, x, "all elements of input should be between 0 and 1");
  CheckProbabilities(b, target, "all elements of target should be between 0 and 1");
  Value one = Like(b, x, 1);
  Value loss = b.Subtract(b.Multiply(b.Subtract(target, one), BoundedLog(b, b.Subtract(one, x))),
                          b.Multiply(target, BoundedLog(b, x)));
  return Reduce(b, Weighted(b, loss, weight), reduction);
}
Value BinaryCrossEntropyBackward(Builder& b, Value gradient, Value x, Value target,
                                 std::optional<Value> weight, int64_t reduction) {
  Value variance = b.Multiply(b.Subtract(Like(b, x, 1), x), x);
  Value slope = b.Divide(b.Subtract(x, target), b.Maximum(variance, Like(b, x, 1e-12)));
  return TimesGradient(b, Weighted(b, slope, weight), gradient, reduction);
}

// (1 - y) x + (1 + (pos - 1) y) (log(1 + exp(-|x|)) + max(-x, 0)).
// Eager computes it in place of 1 - target: the target's type is the result's, whatever the others'
// are.
Value BinaryCrossEntropyWithLogits(Builder& b, Value x, Value target, std::optional<Value> weight,
                                   std::optional<Value> positive_weight, int64_t reduction) {
  const ElementType type = target->element_type();
  if (!IsFloatValue(target)) {
    throw hlo::Error("result type Float can't be cast to the desired output type " +
                     std::string(hlo::ShortName(type)));
  }
  Value softplus = b.Add(b.Unary(Opcode::kLogPlusOne, b.Exp(b.Negate(b.Abs(x)))),
                         b.Maximum(b.Negate(x), Like(b, x, 0)));
  std::tie(x, target) = InCommonType(b, x, target);
  softplus = b.Convert(softplus, x->element_type());
  for (std::optional<Value>* v : {&weight, &positive_weight}) {
    if (*v) *v = b.Convert(**v, x->element_type());
  }
  Value one = Like(b, x, 1);
  if (positive_weight) {
    Value positive = b.BroadcastTo(*positive_weight, x->dimensions());
    softplus = b.Multiply(softplus, b.Add(b.Multiply(b.Subtract(positive, one), target), one));
  }
  Value loss = b.Add(b.Multiply(b.Subtract(one, target), x), softplus);
  return b.Convert(Reduce(b, Weighted(b, loss, weight), reduction), type);
}

Value SoftMarginLoss(Builder& b, Value input, Value classes, int64_t reduction) {
  auto [x, target] = InCommonType(b, input, classes);
  Value z = b.Negate(b.Multiply(x, target));
  Value loss = Reduce(b, b.Unary(Opcode::kLogPlusOne, b.Exp(z)), reduction);
  return b.Convert(loss, input->element_type());
}
Value SoftMarginLossBackward(Builder& b, Value gradient, Value input, Value classes,
                             int64_t reduction) {
  auto [x, target] = InCommonType(b, input, classes);
  Value z = b.Exp(b.Negate(b.Multiply(x, target)));
  // Not the logistic function, and in this order: where eager overflows, this does.
  double share =
      reduction == kMeanReduction ? 1 / static_cast<double>(x->shape().num_elements()) : 1;
  Value slope = b.Multiply(b.Multiply(target, z), Like(b, z, -share));
  slope = b.Divide(slope, b.Add(z, Like(b, z, 1)));
  gradient = b.Convert(b.BroadcastTo(gradient, x->dimensions()), x->element_type());
  return b.Convert(b.Multiply(slope, gradient), input->element_type());
}

// --- Margins: samples [N, C], or one sample [C]

struct Samples {
  Value scores;  // [N, C]
  int64_t count, classes;
};
Samples AsSamples(Builder& b, Value x) {
  int64_t rank = x->shape().rank();
  int64_t count = rank == 2 ? x->shape().dimension(0) : 1;
  int64_t classes = rank == 0 ? 1 : x->shape().dimension(rank - 1);
  return {b.Reshape(x, {count, classes}), count, classes};
}

// The incoming gradient of each sample: one number for all if the losses were reduced.
Value SampleGradient(Builder& b, Value gradient, const Samples& s, int64_t reduction) {
  const Dimensions full = s.scores->dimensions();
  if (reduction == kNoReduction) {
    Value each = b.Reshape(gradient, {s.count});
    return AlongDimension(b, each, full, 0);
  }
  Value spread = Splat(b, b.Reshape(gradient, {}), full);
  if (reduction != kMeanReduction) return spread;
  return b.Multiply(spread, Like(b, spread, 1 / static_cast<double>(s.count)));
}

// The losses of samples. Unlike other losses', their mean over no samples is zero.
Value ReduceSamples(Builder& b, Value loss, int64_t reduction) {
  const bool is_empty = loss->shape().num_elements() == 0;
  return Reduce(b, loss, is_empty && reduction == kMeanReduction ? kSumReduction : reduction);
}

void CheckPower(double p) {
  if (p != 1 && p != 2) throw hlo::Error("multi_margin_loss: only p == 1 and p == 2 supported");
}

void CheckMarginShapes(Value x, Value target, const std::optional<Value>& weight,
                       const Samples& s) {
  const bool has_classes = x->shape().rank() <= 2 && s.classes > 0;
  const bool fits = target->shape().rank() <= 1 && target->shape().num_elements() == s.count;
  if (has_classes && fits && (!weight || (*weight)->shape().num_elements() == s.classes)) return;
  if (!has_classes || x->shape().num_elements() == 0) {
    throw hlo::Error(
        c10::str("Expected non-empty vector or matrix with optional 0-dim batch size, but got: ",
                 at::IntArrayRef(x->dimensions())));
  }
  throw hlo::Error("multi_margin_loss: expected samples and a target for each, but got " +
                   x->shape().ToString() + " and " + target->shape().ToString());
}

// Eager's kernels ask for the type where they read the first class.
void CheckClasses(Builder& b, Value target, const Bounds& bounds, const char* words) {
  if (target->shape().num_elements() == 0) return;
  if (target->element_type() != ElementType::kS64) {
    throw hlo::Error(
        c10::str("expected scalar type Long but found ", ToScalarType(target->element_type())));
  }
  CheckBounds(b, target, bounds, {kRuntimeError, words});
}

// How close each class comes to the sample's own.
struct Closeness {
  Value index;      // [N]: the own class
  Value is_target;  // [N, C]
  Value excess;     // [N, C]: by how much it is closer than the margin
};
Closeness ClosenessOf(Builder& b, const Samples& s, Value target, double margin) {
  const Dimensions full = s.scores->dimensions();
  Value index = b.Reshape(b.Convert(target, ElementType::kS64), {s.count});
  Value own = b.Reshape(GatherAlong(b, s.scores, b.Reshape(index, {s.count, 1}), 1), {s.count});
  Value is_target = b.Eq(Iota(b, full, 1), b.BroadcastInDim(index, full, {0}));
  Value excess =
      b.Add(b.Subtract(s.scores, AlongDimension(b, own, full, 0)), Like(b, s.scores, margin));
  return {index, is_target, excess};
}

Value OfTarget(Builder& b, Value values, const Samples& s, const Closeness& c,
               const std::optional<Value>& weight) {
  if (!weight) return values;
  Value own =
      b.Convert(TakeRows(b, b.Reshape(*weight, {s.classes}), c.index), values->element_type());
  return b.Multiply(values, AlongDimension(b, own, s.scores->dimensions(), 0));
}

Value MultiMarginLoss(Builder& b, Value x, Value target, Constant power, FittingConstant margin,
                      std::optional<Value> weight, int64_t reduction) {
  const double p = NumberOf(power);
  CheckPower(p);
  Samples s = AsSamples(b, x);
  CheckMarginShapes(x, target, weight, s);
  CheckClasses(b, target, Positions(s.classes), "target out of range");
  s.scores = ToAccumulation(b, s.scores);
  const Closeness c = ClosenessOf(b, s, target, NumberOf(margin));
  Value loss = p == 1 ? c.excess : b.Multiply(c.excess, c.excess);
  Value counts = b.And(b.Gt(c.excess, Like(b, c.excess, 0)), b.Not(c.is_target));
  loss = Sum(b, OfTarget(b, ZeroUnless(b, counts, loss), s, c, weight), {1});
  loss = b.Divide(loss, Like(b, loss, static_cast<double>(s.classes)));
  if (reduction == kNoReduction) loss = b.Reshape(loss, target->dimensions());
  return b.Convert(ReduceSamples(b, loss, reduction), x->element_type());
}

// Every class that comes closer to the target's than the margin is pushed down, the target's up.
Value MultiMarginLossBackward(Builder& b, Value gradient, Value x, Value target, Constant power,
                              FittingConstant margin, std::optional<Value> weight,
                              int64_t reduction) {
  const double p = NumberOf(power);
  CheckPower(p);
  Samples s = AsSamples(b, x);
  const Dimensions full = s.scores->dimensions();
  const Closeness c = ClosenessOf(b, s, target, NumberOf(margin));
  Value share = Like(b, c.excess, p / static_cast<double>(s.classes));
  Value slope = OfTarget(b, p == 1 ? share : b.Multiply(share, c.excess), s, c, weight);
  Value pushes = b.And(b.Gt(c.excess, Like(b, c.excess, 0)), b.Not(c.is_target));
  slope = ZeroUnless(b, pushes, slope);
  Value total = BroadcastReduced(b, Sum(b, slope, {1}), {1}, full);
  slope = b.Select(c.is_target, b.Negate(total), slope);
  Value result = b.Multiply(slope, SampleGradient(b, gradient, s, reduction));
  return b.Reshape(result, x->dimensions());
}

// The classes that a sample lists as its targets: those before its first negative number.
struct Listed {
  Value index;      // [N, C], 0 where nothing is listed
  Value is_listed;  // [N, C]
};
Listed ListedTargets(Builder& b, Value target, const Samples& s) {
  const Dimensions full = s.scores->dimensions();
  target = b.Reshape(target, full);
  Value position = Iota(b, full, 1);
  Value is_end = b.Lt(target, b.Zeros(target->shape()));
  Value end = Min(b, b.Select(is_end, position, b.Full(position->shape(), s.classes)), {1});
  Value is_listed = b.Lt(position, BroadcastReduced(b, end, {1}, full));
  return {ZeroUnless(b, is_listed, target), is_listed};
}

// By how much each class comes too close to each target, [sample, target, class]; 0 where it does
// not, and among targets.
Value TooClose(Builder& b, const Samples& s, const Listed& targets, Value is_target) {
  const Dimensions pairs = {s.count, s.classes, s.classes};
  Value own = GatherAlong(b, s.scores, targets.index, 1);
  Value z =
      b.Subtract(b.BroadcastInDim(s.scores, pairs, {0, 2}), b.BroadcastInDim(own, pairs, {0, 1}));
  z = b.Add(z, Like(b, z, 1));
  Value counts = b.And(b.BroadcastInDim(targets.is_listed, pairs, {0, 1}),
                       b.BroadcastInDim(b.Not(is_target), pairs, {0, 2}));
  return ZeroUnless(b, b.And(counts, b.Gt(z, Like(b, z, 0))), z);
}

// The loss, and which classes are targets, in x's type.
std::pair<Value, Value> MultilabelMarginLoss(Builder& b, Value x, Value target, int64_t reduction) {
  const Dimensions& sizes = x->dimensions();
  if (sizes.size() > 2 || (!sizes.empty() && sizes.back() == 0)) {
    throw hlo::Error(
        "Expected non-empty vector or matrix with optional 0-dim batch size, but got: " +
        x->shape().ToString());
  }
  const bool is_one = sizes.size() < 2 && x->shape().num_elements() == 1;
  if (target->dimensions() != sizes &&
      !(is_one && target->shape().rank() < 2 && target->shape().num_elements() == 1)) {
    throw hlo::Error("inconsistent target size: " + target->shape().ToString() +
                     " for input of size: " + x->shape().ToString());
  }
  Samples s = AsSamples(b, x);
  CheckClasses(b, target, {-1, s.classes}, "argument #2 'target' is out of range");
  const Dimensions pairs = {s.count, s.classes, s.classes};
  Listed targets = ListedTargets(b, target, s);
  Value names =
      b.And(b.BroadcastInDim(targets.is_listed, pairs, {0, 1}),
            b.Eq(b.BroadcastInDim(targets.index, pairs, {0, 1}),
                 b.Convert(b.BroadcastInDim(Iota(b, s.scores->dimensions(), 1), pairs, {0, 2}),
                           targets.index->element_type())));
  Value is_target = b.Reduce(Opcode::kOr, names, {1});
  Value loss = Sum(b, TooClose(b, s, targets, is_target), {1, 2});
  loss = b.Divide(loss, Like(b, loss, static_cast<double>(s.classes)));
  if (reduction == kNoReduction && x->shape().rank() < 2) loss = b.Reshape(loss, {});
  return {ReduceSamples(b, loss, reduction),
          b.Reshape(b.Convert(is_target, x->element_type()), x->dimensions())};
}

// Each target is pushed up as often as it pushes another class down.
Value MultilabelMarginLossBackward(Builder& b, Value gradient, Value x, Value target,
                                   int64_t reduction, Value is_target) {
  Samples s = AsSamples(b, x);
  Listed targets = ListedTargets(b, target, s);
  Value is_own = ToPred(b, b.Reshape(is_target, s.scores->dimensions()));
  Value z = TooClose(b, s, targets, is_own);
  Value share =
      ZeroUnless(b, b.Gt(z, Like(b, z, 0)), Like(b, z, 1 / static_cast<double>(s.classes)));
  Value slope = ScatterAlong(b, Sum(b, share, {1}), targets.index, b.Negate(Sum(b, share, {2})), 1,
                             Opcode::kAdd);
  Value result = b.Multiply(slope, SampleGradient(b, gradient, s, reduction));
  return b.Reshape(result, x->dimensions());
}

// --- Negative log likelihood: classes are dimension 1, or 0 of a single sample

int64_t ClassDimension(Value x) { return x->shape().rank() == 1 ? 0 : 1; }

// Where the target names a class; elsewhere neither loss nor gradient.
Value IsCounted(Builder& b, Value target, int64_t ignored) {
  return b.Ne(target, b.Full(target->shape(), ignored));
}

// 1 (or the class's weight) for each counted target, 0 for the ignored.
Value TargetWeights(Builder& b, Value x, Value target, const std::optional<Value>& weight,
                    int64_t ignored) {
  Value counted = IsCounted(b, target, ignored);
  Shape shape = target->shape().WithElementType(x->element_type());
  if (!weight) return b.Convert(counted, x->element_type());
  Value index = b.Select(counted, target, b.Zeros(target->shape()));
  Value gathered = TakeRows(b, *weight, index);
  return b.Select(counted, gathered, b.Zeros(shape));
}

void CheckClasses(Value x, Value target, const std::optional<Value>& weight, int64_t dimension) {
  if (target->element_type() != ElementType::kS64 && target->element_type() != ElementType::kU8) {
    throw hlo::Error("expected target dtype to be Long or Byte, but got " +
                     target->shape().ToString());
  }
  if (x->shape().rank() <= dimension) {
    throw hlo::Error("input tensor should be 1D or 2D, but got " + x->shape().ToString());
  }
  const int64_t classes = x->shape().dimension(dimension);
  if (!weight || (*weight)->dimensions() == Dimensions{classes}) return;
  throw hlo::Error("weight tensor should be defined either for all " + std::to_string(classes) +
                   " classes or no classes but got weight tensor of shape: " +
                   hlo::ToString((*weight)->dimensions()));
}

// The target of a single sample may be a vector of one. Bytes do not hold every class to ignore.
Value TargetOf(Builder& b, Value x, Value target) {
  target = b.Convert(target, ElementType::kS64);
  const bool is_one = x->shape().rank() == 1 && target->dimensions() == Dimensions{1};
  if (is_one) target = b.Reshape(target, {});
  Dimensions expected = x->dimensions();
  expected.erase(expected.begin() + ClassDimension(x));
  if (target->dimensions() != expected) {
    throw hlo::Error("size mismatch (got input: " + hlo::ToString(x->dimensions()) +
                     ", target: " + hlo::ToString(target->dimensions()) + ")");
  }
  return target;
}

std::pair<Value, Value> NllLoss(Builder& b, Value x, Value target, std::optional<Value> weight,
                                int64_t reduction, int64_t ignored) {
  int64_t dimension = ClassDimension(x);
  CheckClasses(x, target, weight, dimension);
  target = TargetOf(b, x, target);
  Value scale = TargetWeights(b, x, target, weight, ignored);
  Value index = b.Select(IsCounted(b, target, ignored), target, b.Zeros(target->shape()));
  CheckBounds(b, index, Positions(x->shape().dimension(dimension)),
              {hlo::ErrorCode::kOutOfRange, "Target {} is out of bounds."});
  Dimensions with_class = target->dimensions();
  with_class.insert(with_class.begin() + dimension, 1);
  Value picked = GatherAlong(b, x, b.Reshape(index, with_class), dimension);
  Value counted = IsCounted(b, target, ignored);
  Value loss = b.Negate(b.Multiply(b.Reshape(picked, target->dimensions()), scale));
  loss = b.Select(counted, loss, Like(b, loss, 0));
  Dimensions all = AllDimensions(scale->shape().rank());
  Value total = Sum(b, scale, all);
  if (reduction == kNoReduction) return {loss, b.Zeros(total->shape())};
  Value sum = Sum(b, loss, all);
  return {reduction == kMeanReduction ? b.Divide(sum, total) : sum, total};
}

// -weight at the target's class and 0 elsewhere, by comparing class numbers: this fuses with what
// follows.
Value NllLossBackward(Builder& b, Value gradient, Value x, Value target,
                      std::optional<Value> weight, int64_t reduction, int64_t ignored,
                      Value total_weight) {
  int64_t dimension = ClassDimension(x);
  CheckClasses(x, target, weight, dimension);
  target = TargetOf(b, x, target);
  const Dimensions& full = x->dimensions();
  Value scale = b.Negate(TargetWeights(b, x, target, weight, ignored));
  Value incoming = b.BroadcastTo(gradient, scale->dimensions());
  if (reduction == kMeanReduction) {
    incoming = b.Divide(incoming, b.BroadcastTo(total_weight, scale->dimensions()));
  }
  Value value =
      b.Select(IsCounted(b, target, ignored), b.Multiply(scale, incoming), b.Zeros(scale->shape()));
  Value classes = Iota(b, full, dimension, target->element_type());
  Value hit = b.Eq(classes, BroadcastReduced(b, target, {dimension}, full));
  return b.Select(hit, BroadcastReduced(b, value, {dimension}, full), b.Zeros(x->shape()));
}

// Classes as floating-point numbers, which PyTorch/XLA takes and eager refuses.
Value WholeClasses(Builder& b, Value target) {
  CheckNone(b, b.Ne(target, b.Unary(Opcode::kFloor, target)),
            {kRuntimeError, "nll_loss: classes are whole numbers, here of a floating-point type"});
  return b.Convert(target, ElementType::kS64);
}

at::Tensor ClassesOf(const at::Tensor& target) {
  return IsXla(target) && target.is_floating_point() ? Record<&WholeClasses>(target) : target;
}

template <int64_t dimensions>
std::tuple<at::Tensor, at::Tensor> RecordNllLoss(const at::Tensor& x, const at::Tensor& target,
                                                 const std::optional<at::Tensor>& weight,
                                                 int64_t reduction, int64_t ignored) {
  return Record<&Twin<dimensions, &NllLoss>::Lower>(x, ClassesOf(target), weight, reduction,
                                                    ignored);
}
template <int64_t dimensions>
at::Tensor RecordNllLossBackward(const at::Tensor& gradient, const at::Tensor& x,
                                 const at::Tensor& target, const std::optional<at::Tensor>& weight,
                                 int64_t reduction, int64_t ignored,
                                 const at::Tensor& total_weight) {
  return Record<&Twin<dimensions, &NllLossBackward>::Lower>(gradient, x, ClassesOf(target), weight,
                                                            reduction, ignored, total_weight);
}

template <int64_t dimensions>
void RegisterNllLoss(torch::Library& m, const char* forward, const char* backward) {
  Register<&Twin<dimensions, &NllLoss>::Lower>(m, forward, &RecordNllLoss<dimensions>);
  Register<&Twin<dimensions, &NllLossBackward>::Lower>(m, backward,
                                                       &RecordNllLossBackward<dimensions>);
}

// --- Without a program: two operators each for one lowering

using OptionalTensor = std::optional<at::Tensor>;

// torch's kernels leave the loss of no samples as they found the memory.
at::Tensor LossOfNone(const at::Tensor& x, int64_t reduction) {
  return reduction == kNoReduction ? at::zeros({0}, x.options()) : at::zeros({}, x.options());
}
at::Tensor RunMultiMarginLoss(const at::Tensor& x, const at::Tensor& target, const at::Scalar& p,
                              const at::Scalar& margin, const OptionalTensor& weight,
                              int64_t reduction) {
  if (x.numel() == 0) return LossOfNone(x, reduction);
  return at::multi_margin_loss(x, target, p, margin, weight, reduction);
}
std::tuple<at::Tensor, at::Tensor> RunMultilabelMarginLoss(const at::Tensor& x,
                                                           const at::Tensor& target,
                                                           int64_t reduction) {
  if (x.numel() == 0) return {LossOfNone(x, reduction), at::zeros_like(x)};
  return at::multilabel_margin_loss_forward(x, target, reduction);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  Register<&MseLoss>(m, "mse_loss");
  Register<&MseLossBackward>(m, "mse_loss_backward");
  Register<&SmoothL1Loss>(m, "smooth_l1_loss");
  Register<&SmoothL1LossBackward>(m, "smooth_l1_loss_backward");
  Register<&HuberLoss>(m, "huber_loss");
  Register<&HuberLossBackward>(m, "huber_loss_backward");
  Register<&BinaryCrossEntropy>(m, "binary_cross_entropy");
  Register<&BinaryCrossEntropyBackward>(m, "binary_cross_entropy_backward");
  Register<&BinaryCrossEntropyWithLogits>(m, "binary_cross_entropy_with_logits");
  Register<&SoftMarginLoss>(m, "soft_margin_loss");
  Register<&SoftMarginLossBackward>(m, "soft_margin_loss_backward");
  RunBy<&MultiMarginLoss>(&RunMultiMarginLoss);
  Register<&MultiMarginLoss>(m, "multi_margin_loss");
  Register<&MultiMarginLossBackward>(m, "multi_margin_loss_backward");
  RunBy<&MultilabelMarginLoss>(&RunMultilabelMarginLoss);
  Register<&MultilabelMarginLoss>(m, "multilabel_margin_loss_forward");
  Register<&MultilabelMarginLossBackward>(m, "multilabel_margin_loss_backward");
  RegisterNllLoss<1>(m, "nll_loss_forward", "nll_loss_backward");
  RegisterNllLoss<2>(m, "nll_loss2d_forward", "nll_loss2d_backward");
}

}  // namespace torch_xla
