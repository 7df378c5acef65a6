// Sums, extremes, moments, norms: what folds dimensions.
#include "aten/reduction.h"

#include <ATen/ops/frobenius_norm_native.h>
#include <ATen/ops/sum_cpu_dispatch.h>

#include <limits>
#include <optional>
#include <tuple>

#include "aten/constant.h"
#include "aten/dimension.h"
#include "aten/elementwise.h"
#include "aten/op.h"
#include "aten/promotion.h"

namespace torch_xla {
namespace {

Value Fold(Builder& b, Opcode combiner, Value x, const Dimensions& dimensions, bool keep) {
  Dimensions full = x->dimensions();
  Value result = dimensions.empty() ? x : b.Reduce(combiner, x, dimensions);
  return keep ? b.Reshape(result, KeepDimensions(full, dimensions)) : result;
}

void RequireElements(Value x, const Dimensions& dimensions, const char* name) {
  if (NumElements(x->dimensions(), dimensions) != 0) return;
  throw hlo::Error(hlo::ErrorCode::kOutOfRange,
                   std::string(name) +
                       "(): Expected reduction dim to have non-zero size, but got " +
                       x->shape().ToString());
}

using OptionalDimensions = std::optional<Dimensions>;
using OptionalType = std::optional<ElementType>;

Dimensions Reduced(Value x, const OptionalDimensions& dimensions) {
  return ReductionDimensions(dimensions, x->shape().rank());
}

Value SumDimensions(Builder& b, Value x, OptionalDimensions dimensions, bool keep,
                    OptionalType dtype) {
  x = Cast(b, x, dtype.value_or(SumType(x->element_type())));
  return Sum(b, x, Reduced(x, dimensions), keep);
}
Value SumAll(Builder& b, Value x, OptionalType dtype) {
  return SumDimensions(b, x, std::nullopt, false, dtype);
}

Value NanSum(Builder& b, Value x, OptionalDimensions dimensions, bool keep, OptionalType dtype) {
  if (!IsIntegral(x) && dtype && hlo::IsComplex(*dtype)) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "nansum into " + std::string(hlo::ShortName(*dtype)));
  }
  if (IsFloatValue(x)) x = b.Select(IsNan(b, x), Like(b, x, 0), x);
  return SumDimensions(b, x, dimensions, keep, dtype);
}

Value MeanDimensions(Builder& b, Value x, OptionalDimensions dimensions, bool keep,
                     OptionalType dtype) {
  if (dtype) x = Cast(b, x, *dtype);
  if (IsIntegral(x)) {
    throw hlo::Error(
        "mean(): could not infer output dtype. Input dtype must be either a floating point or "
        "complex "
        "dtype. Got: " +
        std::string(hlo::ShortName(x->element_type())));
  }
  return Mean(b, x, Reduced(x, dimensions), keep);
}
Value MeanAll(Builder& b, Value x, OptionalType dtype) {
  return MeanDimensions(b, x, std::nullopt, false, dtype);
}

Value ProductDimension(Builder& b, Value x, int64_t dimension, bool keep, OptionalType dtype) {
  ElementType type = dtype.value_or(SumType(x->element_type()));
  x = ToAccumulation(b, Cast(b, x, type));
  Dimensions reduced = ReductionDimensions(Dimensions{dimension}, x->shape().rank());
  return b.Convert(Fold(b, Opcode::kMultiply, x, reduced, keep), type);
}
Value ProductAll(Builder& b, Value x, OptionalType dtype) {
  ElementType type = dtype.value_or(SumType(x->element_type()));
  x = ToAccumulation(b, Cast(b, x, type));
  Dimensions all = AllDimensions(x->shape().rank());
  return b.Convert(Fold(b, Opcode::kMultiply, x, all, false), type);
}

template <Opcode combiner>
Value ExtremeOfAll(Builder& b, Value x, bool keep) {
  Dimensions all = AllDimensions(x->shape().rank());
  if (NumElements(x->dimensions(), all) == 0) {
    throw hlo::Error(
        std::string(combiner == Opcode::kMaximum ? "max" : "min") +
        "(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
        "reduction dim with the 'dim' argument.");
  }
  return Fold(b, combiner, x, all, keep);
}
template <Opcode combiner>
Value ExtremeAll(Builder& b, Value x) {
  return ExtremeOfAll<combiner>(b, x, false);
}
template <Opcode combiner>
Value Extreme(Builder& b, Value x, Dimensions dimensions, bool keep) {
  if (dimensions.empty()) return ExtremeOfAll<combiner>(b, x, keep);
  Dimensions reduced = Reduced(x, dimensions);
  RequireElements(x, reduced, combiner == Opcode::kMaximum ? "amax" : "amin");
  // Complex numbers are refused where there are any; of none, the sum is as empty.
  return Fold(b, IsComplexValue(x) ? Opcode::kAdd : combiner, x, reduced, keep);
}

// The first position along `dimension` at which x equals its extreme, or is NaN if the extreme is.
// Two plain reductions fuse with their producers; a variadic one does not.
Value PositionOf(Builder& b, Value x, Value extreme, int64_t dimension) {
  const Dimensions& dimensions = x->dimensions();
  if (dimensions.empty()) return b.Zeros(Shape::Scalar(ElementType::kS64));
  Value full = BroadcastReduced(b, extreme, {dimension}, dimensions);
  Value hit = b.Eq(x, full);
  if (IsFloatValue(x)) hit = b.Or(hit, IsNan(b, x));
  Value index = Iota(b, dimensions, dimension);
  Value last = b.Full(index->shape(), dimensions[dimension] - 1);
  return b.Reduce(Opcode::kMinimum, b.Select(hit, index, last), {dimension});
}

// torch's extremes of bools; HLO's maximum and minimum take them as they are.
template <Opcode combiner>
std::pair<Value, Value> ExtremeWithIndex(Builder& b, Value x, Dimension dimension, bool keep) {
  Dimensions full = x->dimensions();
  Dimensions reduced = full.empty() ? Dimensions{} : Dimensions{dimension};
  RequireElements(x, reduced, combiner == Opcode::kMaximum ? "max" : "min");
  Value extreme = Fold(b, combiner, x, reduced, false);
  Value position = PositionOf(b, x, extreme, dimension);
  if (!keep) return {extreme, position};
  Dimensions kept = KeepDimensions(full, reduced);
  return {b.Reshape(extreme, kept), b.Reshape(position, kept)};
}

template <Opcode combiner>
Value ArgExtreme(Builder& b, Value x, std::optional<int64_t> dimension, bool keep) {
  Dimensions full = x->dimensions();
  if (dimension) CheckSetOfDimensions(x->shape().rank());
  if (!dimension) x = b.Reshape(x, {x->shape().num_elements()});
  int64_t d = dimension ? WrapDimension(*dimension, x->shape().rank()) : 0;
  if (x->shape().rank() > 0)
    RequireElements(x, {d}, combiner == Opcode::kMaximum ? "argmax" : "argmin");
  Value position = combiner == Opcode::kMaximum ? ArgMax(b, x, d) : ArgMin(b, x, d);
  if (!keep) return position;
  Dimensions reduced = dimension && !full.empty() ? Dimensions{d} : AllDimensions(full.size());
  return b.Reshape(position, KeepDimensions(full, reduced));
}

std::pair<Value, Value> BothExtremes(Builder& b, Value x, std::optional<int64_t> dimension,
                                     bool keep) {
  if (!dimension && x->shape().num_elements() == 0) {
    throw hlo::Error(
        "cannot compute aminmax over an empty dimension as the operation has no identity.");
  }
  OptionalDimensions listed;
  if (dimension) listed = Dimensions{*dimension};
  Dimensions reduced = Reduced(x, listed);
  RequireElements(x, reduced, "aminmax");
  return {Min(b, x, reduced, keep), Max(b, x, reduced, keep)};
}

// The exclusive or of all elements' bits, widened to 64.
Value Hash(Builder& b, Value x, Dimensions dimensions, bool keep, int64_t mode) {
  if (mode != 0) throw hlo::Error("hash_tensor: only mode 0 (xor_sum) is supported");
  ElementType wide = IsFloatValue(x) ? ElementType::kF64 : ElementType::kS64;
  Value bits = b.BitcastConvert(b.Convert(x, wide), ElementType::kU64);
  Dimensions full = bits->dimensions(), reduced = Reduced(x, dimensions);
  RequireElements(x, reduced, "hash_tensor");
  Value zero = b.Zeros(Shape::Scalar(ElementType::kU64));
  Value hash = b.Reduce(bits, zero, reduced, b.ScalarCombiner(Opcode::kXor, ElementType::kU64));
  return keep ? b.Reshape(hash, KeepDimensions(full, reduced)) : hash;
}

// any and all return bools, except of uint8, which they return as uint8.
template <Opcode combiner>
Value Truth(Builder& b, Value x, const Dimensions& reduced, bool keep) {
  ElementType type = x->element_type() == ElementType::kU8 ? ElementType::kU8 : ElementType::kPred;
  return b.Convert(Fold(b, combiner, ToPred(b, x), reduced, keep), type);
}
template <Opcode combiner>
Value TruthAll(Builder& b, Value x) {
  return Truth<combiner>(b, x, AllDimensions(x->shape().rank()), false);
}
template <Opcode combiner>
Value TruthDimension(Builder& b, Value x, int64_t dimension, bool keep) {
  return Truth<combiner>(b, x, Reduced(x, Dimensions{dimension}), keep);
}
template <Opcode combiner>
Value TruthDimensions(Builder& b, Value x, OptionalDimensions dimensions, bool keep) {
  // An empty list reduces nothing here, unlike elsewhere.
  Dimensions reduced = dimensions && dimensions->empty() ? Dimensions{} : Reduced(x, dimensions);
  return Truth<combiner>(b, x, reduced, keep);
}

Value CountNonzero(Builder& b, Value x, Dimensions dimensions) {
  return Sum(b, b.Convert(ToPred(b, x), ElementType::kS64), Reduced(x, dimensions));
}

// --- Moments

double CorrectionOf(const std::optional<Constant>& correction) {
  return correction ? NumberOf(*correction) : 1;
}

std::pair<Value, Value> VarianceMean(Builder& b, Value x, OptionalDimensions dimensions,
                                     std::optional<Constant> correction, bool keep) {
  ElementType type = x->element_type();
  if (IsIntegral(x)) throw hlo::Error("std and var only support floating point and complex dtypes");
  Dimensions reduced = Reduced(x, dimensions);
  Moments moments = MeanAndVariance(b, x, reduced, CorrectionOf(correction), keep);
  return {b.Convert(moments.variance, hlo::RealType(type)), b.Convert(moments.mean, type)};
}
Value Variance(Builder& b, Value x, OptionalDimensions dimensions,
               std::optional<Constant> correction, bool keep) {
  return VarianceMean(b, x, dimensions, correction, keep).first;
}
std::pair<Value, Value> DeviationMean(Builder& b, Value x, OptionalDimensions dimensions,
                                      std::optional<Constant> correction, bool keep) {
  auto [variance, mean] = VarianceMean(b, x, dimensions, correction, keep);
  return {b.Sqrt(variance), mean};
}
Value Deviation(Builder& b, Value x, OptionalDimensions dimensions,
                std::optional<Constant> correction, bool keep) {
  return DeviationMean(b, x, dimensions, correction, keep).first;
}

// Eager's steps subtract infinities from each other; the mean of such is infinite in a program.
at::Tensor MeanOfMoments(const at::Tensor& x, at::OptionalIntArrayRef dimensions, bool keep,
                         const at::Tensor& mean) {
  return mean.isnan().any().item<bool>() ? at::mean(x, dimensions, keep) : mean;
}
std::tuple<at::Tensor, at::Tensor> RunVarianceMean(const at::Tensor& x,
                                                   at::OptionalIntArrayRef dimensions,
                                                   const std::optional<at::Scalar>& correction,
                                                   bool keep) {
  auto [variance, mean] = at::var_mean(x, dimensions, correction, keep);
  return {variance, MeanOfMoments(x, dimensions, keep, mean)};
}
std::tuple<at::Tensor, at::Tensor> RunDeviationMean(const at::Tensor& x,
                                                    at::OptionalIntArrayRef dimensions,
                                                    const std::optional<at::Scalar>& correction,
                                                    bool keep) {
  auto [deviation, mean] = at::std_mean(x, dimensions, correction, keep);
  return {deviation, MeanOfMoments(x, dimensions, keep, mean)};
}

// --- Norms

Value VectorNorm(Builder& b, Value x, Constant p, OptionalDimensions dimensions, bool keep,
                 OptionalType dtype) {
  if (IsIntegral(x)) {
    throw hlo::Error("a norm is of floating point or complex numbers, not of " +
                     x->shape().ToString());
  }
  ElementType type = hlo::RealType(dtype.value_or(x->element_type()));
  if (dtype) x = b.Convert(x, *dtype);
  const Dimensions reduced = Reduced(x, dimensions);
  const double power = NumberOf(p);
  const bool has_identity = power >= 0 && power != std::numeric_limits<double>::infinity();
  if (!has_identity && NumElements(x->dimensions(), reduced) == 0) {
    throw hlo::Error("this norm has no value for no elements");
  }
  Value result = NormOver(b, ToAccumulation(b, x), power, reduced, keep);
  return b.Convert(result, type);
}

// On devices that it does not know torch's composite takes the root of a sum of squares, which has
// no derivative at zero.
at::Tensor FrobeniusNorm(const at::Tensor& x, at::IntArrayRef dimensions, bool keep) {
  // Sparse tensors have no vector norm.
  if (x.layout() != at::kStrided) return at::native::frobenius_norm(x, dimensions, keep);
  return at::linalg_vector_norm(x, 2, dimensions, keep);
}

Value NormDimensions(Builder& b, Value x, std::optional<Constant> p, Dimensions dimensions,
                     bool keep) {
  return VectorNorm(b, x, p.value_or(Constant(2.0)), dimensions, keep, std::nullopt);
}
Value NormDimensionsTyped(Builder& b, Value x, std::optional<Constant> p, Dimensions dimensions,
                          bool keep, ElementType dtype) {
  return VectorNorm(b, x, p.value_or(Constant(2.0)), dimensions, keep, dtype);
}

Value LogSumExp(Builder& b, Value x, Dimensions dimensions, bool keep) {
  ElementType type = FloatType(x->element_type());
  x = ToAccumulation(b, b.Convert(x, type));
  Dimensions reduced = Reduced(x, dimensions), full = x->dimensions();
  Value largest = Max(b, IsComplexValue(x) ? b.Real(x) : x, reduced);
  // Of infinities nothing is subtracted: their difference is NaN.
  Value is_finite = b.Unary(Opcode::kIsFinite, largest);
  Value shift = b.Convert(b.Select(is_finite, largest, Like(b, largest, 0)), x->element_type());
  Value shifted = b.Subtract(x, BroadcastReduced(b, shift, reduced, full));
  Value result = b.Add(b.Log(Sum(b, b.Exp(shifted), reduced)), shift);
  if (keep) result = b.Reshape(result, KeepDimensions(full, reduced));
  return b.Convert(result, type);
}

// By torch's kernel itself: its dispatcher takes as long as a small sum.
at::Tensor SumOnHost(const at::Tensor& x, at::OptionalIntArrayRef dimensions, bool keep,
                     std::optional<at::ScalarType> type) {
  if (x.is_conj() || x.is_neg()) return at::sum(x, dimensions, keep, type);
  return at::cpu::sum(x, dimensions, keep, type);
}

}  // namespace

Value Sum(Builder& b, Value x, const Dimensions& dimensions, bool keep_dimensions) {
  ElementType type = x->element_type();
  return b.Convert(Fold(b, Opcode::kAdd, ToAccumulation(b, x), dimensions, keep_dimensions), type);
}

Value Mean(Builder& b, Value x, const Dimensions& dimensions, bool keep_dimensions) {
  ElementType type = x->element_type();
  double count = static_cast<double>(NumElements(x->dimensions(), dimensions));
  Value sum = Fold(b, Opcode::kAdd, ToAccumulation(b, x), dimensions, keep_dimensions);
  Value mean = count == 0 ? Like(b, sum, kNaN) : b.Multiply(sum, Like(b, sum, 1 / count));
  return b.Convert(mean, type);
}

Value Max(Builder& b, Value x, const Dimensions& dimensions, bool keep_dimensions) {
  return Fold(b, Opcode::kMaximum, x, dimensions, keep_dimensions);
}
Value Min(Builder& b, Value x, const Dimensions& dimensions, bool keep_dimensions) {
  return Fold(b, Opcode::kMinimum, x, dimensions, keep_dimensions);
}

Moments MeanAndVariance(Builder& b, Value x, const Dimensions& dimensions, double correction,
                        bool keep_dimensions) {
  x = ToAccumulation(b, x);
  double count = static_cast<double>(NumElements(x->dimensions(), dimensions));
  Value mean = Mean(b, x, dimensions);
  Value centered = b.Subtract(x, BroadcastReduced(b, mean, dimensions, x->dimensions()));
  if (IsComplexValue(centered)) centered = b.Abs(centered);
  Value sum = Sum(b, b.Multiply(centered, centered), dimensions);
  // Of no elements it is no number, whatever the correction is.
  const double divisor = count == 0 ? 0 : std::max(count - correction, 0.0);
  Value variance = b.Divide(sum, Like(b, sum, divisor));
  if (keep_dimensions) {
    Dimensions kept = KeepDimensions(x->dimensions(), dimensions);
    return {b.Reshape(mean, kept), b.Reshape(variance, kept)};
  }
  return {mean, variance};
}

Value BroadcastReduced(Builder& b, Value reduced, const Dimensions& dimensions,
                       const Dimensions& full) {
  Dimensions others = OtherDimensions(dimensions, full.size());
  if (reduced->dimensions().size() != others.size()) {
    Dimensions squeezed;
    for (int64_t d : others) squeezed.push_back(full[d]);
    reduced = b.Reshape(reduced, squeezed);
  }
  return b.BroadcastInDim(reduced, full, others);
}

std::pair<Value, Value> LargestWithPosition(Builder& b, Value x, Value positions,
                                            const Dimensions& reduced) {
  Value largest = b.Reduce(Opcode::kMaximum, x, reduced);
  Value is_there = b.Eq(x, BroadcastReduced(b, largest, reduced, x->dimensions()));
  const hlo::Literal last = hlo::IdentityLiteral(Opcode::kMinimum, positions->element_type());
  Value places = b.Select(is_there, positions, Splat(b, b.Constant(last), positions->dimensions()));
  if (!IsFloatValue(x)) return {largest, b.Reduce(Opcode::kMinimum, places, reduced)};
  // The complement of a position is negative, and least for the last one.
  places = b.Select(IsNan(b, x), b.Not(positions), places);
  Value place = b.Reduce(Opcode::kMinimum, places, reduced);
  Value is_nan = b.Lt(place, b.Zeros(place->shape()));
  return {largest, b.Select(is_nan, b.Not(place), place)};
}

Value ArgMax(Builder& b, Value x, int64_t dimension) {
  if (x->dimensions().empty()) return PositionOf(b, x, x, 0);
  return PositionOf(b, x, b.Reduce(Opcode::kMaximum, x, {dimension}), dimension);
}
Value ArgMin(Builder& b, Value x, int64_t dimension) {
  if (x->dimensions().empty()) return PositionOf(b, x, x, 0);
  return PositionOf(b, x, b.Reduce(Opcode::kMinimum, x, {dimension}), dimension);
}

Value NormOver(Builder& b, Value x, double p, const Dimensions& reduced, bool keep) {
  Value magnitude = b.Abs(x);
  if (p == kInfinity) return Fold(b, Opcode::kMaximum, magnitude, reduced, keep);
  if (p == -kInfinity) return Fold(b, Opcode::kMinimum, magnitude, reduced, keep);
  if (p == 0)
    return Sum(b, b.Convert(ToPred(b, magnitude), magnitude->element_type()), reduced, keep);
  if (p == 1) return Sum(b, magnitude, reduced, keep);
  if (p == 2) return b.Sqrt(Sum(b, b.Multiply(magnitude, magnitude), reduced, keep));
  Value sum = Sum(b, b.Power(magnitude, Like(b, magnitude, p)), reduced, keep);
  return b.Power(sum, Like(b, sum, 1 / p));
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  Register<&Hash>(m, "hash_tensor");
  RunBy<&SumAll>(+[](const at::Tensor& x, std::optional<at::ScalarType> type) {
    return SumOnHost(x, at::IntArrayRef(), false, type);
  });
  Register<&SumAll>(m, "sum");
  RunBy<&SumDimensions>(&SumOnHost);
  Register<&SumDimensions>(m, "sum.dim_IntList");
  Register<&NanSum>(m, "nansum");
  Register<&MeanAll>(m, "mean");
  Register<&MeanDimensions>(m, "mean.dim");
  Register<&ProductAll>(m, "prod");
  Register<&ProductDimension>(m, "prod.dim_int");
  Register<&Extreme<Opcode::kMaximum>>(m, "amax");
  Register<&Extreme<Opcode::kMinimum>>(m, "amin");
  Register<&ExtremeAll<Opcode::kMaximum>>(m, "max");
  Register<&ExtremeAll<Opcode::kMinimum>>(m, "min");
  Register<&ExtremeWithIndex<Opcode::kMaximum>>(m, "max.dim");
  Register<&ExtremeWithIndex<Opcode::kMinimum>>(m, "min.dim");
  Register<&ArgExtreme<Opcode::kMaximum>>(m, "argmax");
  Register<&ArgExtreme<Opcode::kMinimum>>(m, "argmin");
  Register<&BothExtremes>(m, "aminmax");
  Register<&TruthAll<Opcode::kOr>>(m, "any");
  Register<&TruthAll<Opcode::kAnd>>(m, "all");
  Register<&TruthDimension<Opcode::kOr>>(m, "any.dim");
  Register<&TruthDimension<Opcode::kAnd>>(m, "all.dim");
  Register<&TruthDimensions<Opcode::kOr>>(m, "any.dims");
  Register<&TruthDimensions<Opcode::kAnd>>(m, "all.dims");
  Register<&CountNonzero>(m, "count_nonzero.dim_IntList");
  Register<&Variance>(m, "var.correction");
  Register<&Deviation>(m, "std.correction");
  RunBy<&VarianceMean>(&RunVarianceMean);
  RunBy<&DeviationMean>(&RunDeviationMean);
  Register<&VarianceMean>(m, "var_mean.correction");
  Register<&DeviationMean>(m, "std_mean.correction");
  Register<&VectorNorm>(m, "linalg_vector_norm");
  m.impl("frobenius_norm.dim", &FrobeniusNorm);
  Register<&NormDimensions>(m, "norm.ScalarOpt_dim");
  Register<&NormDimensionsTyped>(m, "norm.ScalarOpt_dim_dtype");
  Register<&LogSumExp>(m, "logsumexp");
}

TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) { m.impl("frobenius_norm.dim", &FrobeniusNorm); }

}  // namespace torch_xla
