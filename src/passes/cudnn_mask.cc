#include "passes/cudnn_mask.h"

#include <limits>
#include <utility>

namespace passes {

using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Shape;
using hlo::Value;

namespace {

// Powers of two: their product with the logarithm that exponentials are made with is exact, so that
// equal ones differ by nothing.
constexpr double kLowest = -0x1p41, kHidden = -0x1p42;
// From here on a float's sum with a score has lost most of the score: its last place is 4 and more.
constexpr double kLow = -0x1p25;
// Of f16, both with room for scores between them.
constexpr double kLowestOfF16 = -49152, kHiddenOfF16 = -65504;
// The exponential of 64 is far from overflow. Differences of lower numbers are exact in their own
// type, f16 or bf16, but for those whose exponentials are nothing.
constexpr double kLowRow = -64;

Dimensions FourDimensions(Dimensions dimensions) {
  dimensions.insert(dimensions.begin(), 4 - dimensions.size(), 1);
  return dimensions;
}

}  // namespace

CudnnMask::CudnnMask(Builder& builder, Value mask, Dimensions scores, bool is_causal)
    : builder_(builder), scores_(std::move(scores)), is_causal_(is_causal) {
  const bool is_f16 = mask->element_type() == ElementType::kF16;
  hidden_ = is_f16 ? kHiddenOfF16 : kHidden;
  lowest_ = is_f16 ? kLowestOfF16 : kLowest;
  const Value given = builder_.Reshape(mask, FourDimensions(mask->dimensions()));
  const Value is_hidden = builder_.Eq(given, Like(given, -std::numeric_limits<double>::infinity()));
  const Value is_low = builder_.Le(given, Like(given, is_f16 ? kLowestOfF16 : kLow));
  bias_ = builder_.Select(is_hidden, Like(given, hidden_),
                          builder_.Select(is_low, Like(given, lowest_), given));
}

// Where a causal row's keys are its own: what it doesn't see may be any higher.
Value CudnnMask::RaisedBias() const {
  const Value visible = Visible();
  const Value raise = builder_.BroadcastInDim(OwnRaise(), visible->dimensions(), {0, 1, 2});
  return OfScores(builder_.Convert(builder_.Add(visible, raise), bias_->element_type()));
}

Value CudnnMask::OfScores(Value x) const {
  const Dimensions& own = bias_->dimensions();
  return builder_.BroadcastTo(x, {own[0], own[1], scores_[2], scores_[3]});
}

bool CudnnMask::has_flat_rows() const { return bias_->element_type() != ElementType::kF16; }

Value CudnnMask::Visible() const {
  Value bias = builder_.Convert(bias_, ElementType::kF32);
  if (!is_causal_) return bias;
  const Dimensions& own = bias_->dimensions();
  bias = builder_.BroadcastTo(bias, {own[0], own[1], scores_[2], scores_[3]});
  const Shape positions(ElementType::kS32, bias->dimensions());
  const Value is_seen = builder_.Ge(builder_.Iota(positions, 2), builder_.Iota(positions, 3));
  return builder_.Select(is_seen, bias, Like(bias, hidden_));
}

// [b,h,q], of which each may be 1, for all rows.
Value CudnnMask::OfRows(Value reduced) const {
  return builder_.BroadcastTo(reduced, {scores_[0], scores_[1], scores_[2]});
}

Value CudnnMask::Largest() const { return builder_.Reduce(hlo::Opcode::kMaximum, Visible(), {3}); }

Value CudnnMask::LargestIs(double value) const {
  const Value largest = Largest();
  return OfRows(builder_.Eq(largest, Like(largest, value)));
}

Value CudnnMask::OwnRaise() const {
  const Value largest = Largest();
  const Value to_zero = builder_.Select(builder_.Le(largest, Like(largest, kLowRow)),
                                        builder_.Negate(largest), builder_.Zeros(largest->shape()));
  if (!has_flat_rows()) return to_zero;
  // As far above 0 as it was below, it leaves nothing of the scores either.
  const Value is_flat = builder_.Eq(largest, Like(largest, lowest_));
  return builder_.Select(is_flat, Like(largest, -2 * lowest_), to_zero);
}

Value CudnnMask::CountLowest() const {
  const Value visible = Visible();
  const Value is_lowest = builder_.Eq(visible, Like(visible, lowest_));
  const Value count =
      builder_.Reduce(hlo::Opcode::kAdd, builder_.Convert(is_lowest, ElementType::kF32), {3});
  // A mask of rows alone stands for each of the keys.
  const int64_t each = scores_[3] / visible->shape().dimension(3);
  return OfRows(builder_.Multiply(count, Like(count, static_cast<double>(each))));
}

}  // namespace passes
