// Classes drawn by their probabilities (torch.multinomial).
#include "aten/draws.h"
#include "aten/elementwise.h"
#include "aten/evaluated_form.h"
#include "aten/generator.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "aten/sort.h"
#include "aten/value_check.h"

namespace torch_xla {
namespace {

// Relative to the largest of each row, so that neither sums nor quotients of them leave the numbers
// of their type, however large or small a program's unnormalized probabilities are.
Value RelativeProbabilities(Builder& b, Value p) {
  const Dimensions last = {p->shape().rank() - 1};
  p = ToAccumulation(b, p);
  return b.Divide(p, BroadcastReduced(b, Max(b, p, last), last, p->dimensions()));
}

// Along the last dimension.
void CheckDistributions(Builder& b, Value p) {
  CheckAll(b, {kRuntimeError, "probability tensor contains either `inf`, `nan` or element < 0"},
           [&] { return b.And(b.Ge(p, Like(b, p, 0)), b.Lt(p, Like(b, p, kInfinity))); });
  CheckAll(b, {kRuntimeError, "invalid multinomial distribution (sum of probabilities <= 0)"},
           [&] { return b.Reduce(Opcode::kOr, b.Gt(p, Like(b, p, 0)), {p->shape().rank() - 1}); });
}

// A race of exponential clocks with the probabilities as rates: the order of arrival is a draw
// without replacement. Whose probability is zero comes last.
Value DrawWithoutReplacement(Builder& b, Value state, Value p, int64_t count) {
  int64_t last = p->shape().rank() - 1;
  CheckDistributions(b, p);
  Value relative = RelativeProbabilities(b, p);
  ElementType computed = relative->element_type();
  Value e = StandardExponential(b, BitsFor(b, state, p->dimensions(), computed));
  Value speed = ToPositiveFinite(b, b.Divide(relative, e), computed);
  speed = ZeroUnless(b, b.Gt(p, Like(b, p, 0)), speed);
  Value order = SortWithIndices(b, speed, last, true, false).second;
  return b.SliceInDim(order, last, 0, count);
}

// How many of the cumulated probabilities a uniform number passes. A class of probability zero ends
// where the one before it ends, however sums round, so that it is never drawn.
Value DrawWithReplacement(Builder& b, Value state, Value p, int64_t count) {
  int64_t last = p->shape().rank() - 1, classes = p->shape().dimension(last);
  CheckDistributions(b, p);
  p = RelativeProbabilities(b, p);
  Value is_possible = b.Gt(p, Like(b, p, 0));
  Value cumulated =
      CumulativeMaximum(b, ZeroUnless(b, is_possible, CumulativeSum(b, p, last)), last);
  Dimensions draws = p->dimensions(), pairs = draws;
  draws[last] = count;
  pairs.insert(pairs.begin() + last, count);
  ElementType computed = p->element_type();
  Value u = UnitUniform(b, BitsFor(b, state, draws, computed), computed);
  Value total = b.SliceInDim(cumulated, last, classes - 1, classes);
  u = b.Multiply(u, b.BroadcastTo(total, draws));
  // With few classes to compare with is quicker than to halve.
  constexpr int64_t kFewClasses = 64;
  Value index;
  if (classes <= kFewClasses) {
    Value limits = BroadcastReduced(b, cumulated, {last}, pairs);
    Value passed = b.Le(limits, BroadcastReduced(b, u, {last + 1}, pairs));
    index = Sum(b, b.Convert(passed, ElementType::kS64), {last + 1});
  } else {
    index = CountBelow(b, cumulated, u, /*right=*/true);
  }
  return b.Minimum(index, b.Full(index->shape(), classes - 1));
}

at::Tensor Multinomial(const at::Tensor& p, int64_t count, bool replacement,
                       std::optional<at::Generator> generator) {
  TORCH_CHECK(p.dim() == 1 || p.dim() == 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(at::isFloatingType(p.scalar_type()),
              "multinomial only supports floating-point dtypes for input, got: ", p.scalar_type());
  TORCH_CHECK(count > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(replacement || count <= p.size(-1),
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  // As many as float32 counts.
  TORCH_CHECK(p.size(-1) <= (int64_t{1} << 24), "number of categories cannot exceed 2^24");
  lazy::Value state = RandomState(generator, p.device());
  return replacement ? Record<&DrawWithReplacement>(state, p, count)
                     : Record<&DrawWithoutReplacement>(state, p, count);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("multinomial", &Multinomial);
  RunByEvaluator<&DrawWithoutReplacement>();
  RunByEvaluator<&DrawWithReplacement>();
}

}  // namespace torch_xla
