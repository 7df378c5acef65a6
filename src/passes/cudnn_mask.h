// A mask of attention as cuDNN's kernels take it, and what becomes of the rows in which it leaves
// the kernels nothing to tell scores apart by.
//
// They subtract what a row has largest, and minus infinity from itself is no number. So the bias is
// finite: what is hidden gets `hidden`, and what is lower than a score can tell, as the lowest
// number of a type, gets `lowest`, which hides it from all that is not as low; of several such
// numbers in a row none hides another. A row is
//   hidden   if it sees no key: its weights are 0;
//   flat     if all that it sees is `lowest`: its weights are alike, as they are where the lowest
//            number of a type is added to scores, of which nothing is left in the sum.
// Of f16 no row is flat: its lowest number leaves a float's sum the scores.
//
// The backward kernel computes whole tiles of keys, and gives those beyond the last a score of 0,
// whose exponential less a low row's logarithm overflows, so that the product with a key of zeros
// is no number. Low rows are therefore raised there, the bias and the logarithm by as much.
#pragma once

#include "hlo/builder.h"

namespace passes {

class CudnnMask {
 public:
  // `mask`: f16 or bf16, [q,k] or [b,h,q,k] where each may be 1. `scores`: [b,h,q,k].
  CudnnMask(hlo::Builder& builder, hlo::Value mask, hlo::Dimensions scores, bool is_causal);

  // [b,h,q,k] where batch and heads may be 1.
  hlo::Value Bias() const { return OfScores(bias_); }
  hlo::Value RaisedBias() const;
  double hidden() const { return hidden_; }
  double lowest() const { return lowest_; }

  // Of rows, [b,h,q]: which are so.
  hlo::Value IsHidden() const { return LargestIs(hidden_); }
  hlo::Value IsFlat() const { return LargestIs(lowest_); }
  bool has_flat_rows() const;
  // How many keys of a row are `lowest`, f32 [b,h,q].
  hlo::Value CountLowest() const;
  // What they are raised by, f32 [b,h,q].
  hlo::Value Raise() const { return OfRows(OwnRaise()); }

 private:
  hlo::Value Like(hlo::Value x, double value) const { return builder_.Full(x->shape(), value); }
  // The bias in f32, where a causal row's keys are its own.
  hlo::Value Visible() const;
  // Of each row, [b,h,q] of which each may be 1.
  hlo::Value Largest() const;
  hlo::Value OwnRaise() const;
  hlo::Value OfRows(hlo::Value reduced) const;
  hlo::Value OfScores(hlo::Value x) const;
  hlo::Value LargestIs(double value) const;

  hlo::Builder& builder_;
  hlo::Dimensions scores_;
  bool is_causal_;
  double hidden_, lowest_;
  hlo::Value bias_;  // its dimensions as the mask's
};

}  // namespace passes
