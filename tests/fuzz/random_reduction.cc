// Reductions, windows and sorts, and the chains of them that networks have.
#include <algorithm>
#include <numeric>

#include "hlo/error.h"
#include "random_generator.h"

namespace fuzz {

void Generator::Reduce() {
  Value x = Any();
  Dimensions some = SomeDimensions(x->shape().rank());
  if (bytes_.Chance(80) && x->shape().rank() > 0) some = {x->shape().rank() - 1};
  const Opcode combiner = Combiner(x->element_type());
  if (combiner == Opcode::kMaximum && bytes_.Chance(60)) {
    return Push(b_.Reduce(x, Like(Shape::Scalar(x->element_type())), some,
                          b_.ScalarCombiner(combiner, x->element_type())));
  }
  Push(b_.Reduce(combiner, x, some));
}

void Generator::ReduceInOrder() {
  Value x = Any();
  const ElementType type = x->element_type();
  if (hlo::IsComplex(type) || type == ElementType::kPred) return;
  const Shape scalar = Shape::Scalar(type);
  // The evaluator rounds each difference of 16 bits, and the engine the last one.
  const bool is_short = type == ElementType::kF16 || type == ElementType::kBF16;
  const int64_t kind = is_short ? 2 + bytes_.Below(2) : bytes_.Below(4);
  Computation* body = b_.Region("body", {scalar, scalar}, [&](Builder& r, const Values& p) {
    switch (kind) {
      case 0:
        return Values{r.Subtract(p[0], p[1])};
      case 1:
        return Values{r.Subtract(p[1], p[0])};
      case 2:
        return Values{r.Select(r.Lt(p[1], p[0]), p[0], p[1])};
      default:
        return Values{r.Select(r.Gt(p[0], p[1]), p[1], p[0])};
    }
  });
  Dimensions some = SomeDimensions(x->shape().rank());
  if (bytes_.Chance(80) && x->shape().rank() > 0) some = {x->shape().rank() - 1};
  Push(b_.Reduce(x, Like(scalar), some, body));
}

void Generator::ArgumentOfMaximum() {
  Value x = Any();
  if (hlo::IsComplex(x->element_type()) || x->shape().rank() == 0) return;
  const ElementType type = x->element_type();
  const int64_t dimension = bytes_.Below(x->shape().rank());
  const Shape scalar = Shape::Scalar(type), position = Shape::Scalar(ElementType::kS64);
  Computation* body =
      b_.Region("larger", {scalar, position, scalar, position}, [](Builder& r, const Values& p) {
        // NaN is larger than any number.
        Value take = r.Or(r.Gt(p[2], p[0]), r.And(r.Ne(p[2], p[2]), r.Eq(p[0], p[0])));
        Value tie = r.And(r.Or(r.Eq(p[2], p[0]), r.And(r.Ne(p[2], p[2]), r.Ne(p[0], p[0]))),
                          r.Lt(p[3], p[1]));
        take = r.Or(take, tie);
        return Values{r.Select(take, p[2], p[0]), r.Select(take, p[3], p[1])};
      });
  Value lowest = b_.Constant(hlo::IdentityLiteral(Opcode::kMaximum, type));
  Value last = b_.ConstantScalar(ElementType::kS64, std::numeric_limits<int64_t>::max());
  Push(b_.ReduceVariadic({x, b_.Iota(x->shape().WithElementType(ElementType::kS64), dimension)},
                         {lowest, last}, {dimension}, body));
}

hlo::Window Generator::SmallWindow(Value x, bool dilated) {
  const int64_t rank = x->shape().rank();
  hlo::Window window = hlo::Window::Trivial(rank);
  for (int64_t i = std::max<int64_t>(0, rank - 2); i < rank; ++i) {
    window.dimensions[i] = 1 + bytes_.Below(3);
    window.strides[i] = 1 + bytes_.Below(3);
    if (window.dimensions[i] == 1) continue;
    window.padding_low[i] = bytes_.Chance(128) ? bytes_.Below(window.dimensions[i]) : 0;
    window.padding_high[i] = bytes_.Chance(128) ? bytes_.Below(window.dimensions[i]) : 0;
    if (!dilated) continue;
    if (bytes_.Chance(30)) window.window_dilations[i] = 2;
    if (bytes_.Chance(30)) window.base_dilations[i] = 2;
  }
  return window;
}

void Generator::ReduceWindow() {
  Value x = Any();
  const ElementType type = x->element_type();
  const Opcode combiner = Combiner(type);
  Push(b_.ReduceWindow(x, b_.Constant(hlo::IdentityLiteral(combiner, type)), SmallWindow(x, true),
                       b_.ScalarCombiner(combiner, type)));
}

void Generator::Scan() {
  Value x = Any();
  const int64_t rank = x->shape().rank();
  if (rank == 0) return;
  const int64_t d = bytes_.Below(rank), size = x->dimensions()[d];
  if (size == 0) return;
  hlo::Window window = hlo::Window::Trivial(rank);
  window.dimensions[d] = size;
  (bytes_.Chance(128) ? window.padding_low : window.padding_high)[d] = size - 1;
  const Opcode combiner = Combiner(x->element_type());
  Push(b_.ReduceWindow(x, b_.Constant(hlo::IdentityLiteral(combiner, x->element_type())), window,
                       b_.ScalarCombiner(combiner, x->element_type())));
}

void Generator::SelectAndScatter() {
  Value x = Any();
  const ElementType type = x->element_type();
  if (hlo::IsComplex(type) || x->shape().rank() == 0) return;
  const hlo::Window window = SmallWindow(x, false);
  Dimensions source;
  for (size_t i = 0; i < x->dimensions().size(); ++i) {
    const int64_t room =
        x->dimensions()[i] + window.padding_low[i] + window.padding_high[i] - window.dimensions[i];
    source.push_back(room < 0 ? 0 : room / window.strides[i] + 1);
  }
  const Shape scalar = Shape::Scalar(type);
  Computation* select = b_.Region("select", {scalar, scalar}, [](Builder& r, const Values& p) {
    return Values{r.Ge(p[0], p[1])};
  });
  const Opcode combiner = type == ElementType::kPred ? Opcode::kOr : Opcode::kAdd;
  Push(b_.SelectAndScatter(x, Like(x->shape().WithDimensions(source)),
                           b_.Constant(hlo::IdentityLiteral(combiner, type)), window, select,
                           b_.ScalarCombiner(combiner, type)));
}

void Generator::Sort() {
  Value x = Any();
  const ElementType type = x->element_type();
  if (hlo::IsComplex(type) || x->shape().rank() == 0) return;
  const Shape scalar = Shape::Scalar(type);
  Values sorted = {x};
  std::vector<Shape> parameters = {scalar, scalar};
  if (bytes_.Chance(128)) {
    sorted.push_back(Like(x->shape().WithElementType(AnyType())));
    parameters.insert(parameters.end(), 2, Shape::Scalar(sorted[1]->element_type()));
  }
  const bool descending = bytes_.Chance(100);
  Computation* order = b_.Region("order", parameters, [&](Builder& r, const Values& p) {
    return Values{r.Compare(
        p[0], p[1], descending ? hlo::ComparisonDirection::kGt : hlo::ComparisonDirection::kLt,
        hlo::IsFloat(type) ? hlo::ComparisonType::kTotalOrder : hlo::ComparisonType::kNotype)};
  });
  Push(b_.Sort(sorted, bytes_.Below(x->shape().rank()), true, order));
}

Value Generator::Along(Value reduced, Value x, int64_t dimension) {
  Dimensions map;
  for (int64_t i = 0; i < x->shape().rank(); ++i) {
    if (i != dimension) map.push_back(i);
  }
  return b_.BroadcastInDim(reduced, x->dimensions(), map);
}

void Generator::Softmax() {
  Value x = To(Any(), AnyFloat());
  if (x->shape().rank() == 0) return;
  const int64_t d = bytes_.Chance(200) ? x->shape().rank() - 1 : bytes_.Below(x->shape().rank());
  Value e = b_.Exp(b_.Subtract(x, Along(b_.Reduce(Opcode::kMaximum, x, {d}), x, d)));
  Push(b_.Divide(e, Along(b_.Reduce(Opcode::kAdd, e, {d}), x, d)));
}

void Generator::Normalize() {
  Value x = To(Any(), AnyFloat());
  if (x->shape().rank() == 0) return;
  const int64_t d = x->shape().rank() - 1;
  const auto size = static_cast<double>(x->dimensions()[d]);
  auto mean = [&](Value v) {
    Value sum = b_.Reduce(Opcode::kAdd, v, {d});
    return b_.Divide(sum, b_.Full(sum->shape(), size));
  };
  Value centered = b_.Subtract(x, Along(mean(x), x, d));
  Value variance = mean(b_.Multiply(centered, centered));
  Value scale = b_.Rsqrt(b_.Add(variance, b_.Full(variance->shape(), 0.01)));
  Push(b_.Multiply(centered, Along(scale, x, d)));
  Push(variance);
}

void Generator::BatchNorm() {
  Value x = To(Any(), AnyFloat());
  if (x->shape().rank() == 0 || x->shape().num_elements() == 0) return;
  const int64_t feature = bytes_.Below(x->shape().rank());
  const hlo::BatchNormAttributes attributes{0.01f, feature};
  const Shape channel(x->element_type(), {x->dimensions()[feature]});
  Value scale = Like(channel), offset = Like(channel), mean = Like(channel);
  Value variance = b_.Abs(Like(channel));
  switch (bytes_.Below(3)) {
    case 0:
      return Push(b_.Create(Opcode::kBatchNormTraining, {x, scale, offset}, attributes));
    case 1:
      return Push(
          b_.Create(Opcode::kBatchNormInference, {x, scale, offset, mean, variance}, attributes));
    default:
      return Push(b_.Create(Opcode::kBatchNormGrad, {x, scale, mean, variance, Like(x->shape())},
                            attributes));
  }
}

}  // namespace fuzz
