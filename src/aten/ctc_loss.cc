// Connectionist temporal classification (Graves et al., 2006): the probability of a target summed
// over all its alignments with the input, by the forward recursion over time; the gradient needs
// the backward recursion too. Both are loops on the device, whose steps take all samples together.
#include <bit>

#include "aten/elementwise.h"
#include "aten/indexing.h"
#include "aten/op.h"
#include "aten/reduction.h"

namespace torch_xla {
namespace {

constexpr ElementType kIndex = ElementType::kS64;

// The states of a target of n labels are blank, label 1, blank, label 2, …, blank.
struct CtcProblem {
  int64_t time, batch, classes, states;
  Value log_probabilities;          // [time, batch, classes]
  Value labels;                     // [batch, states]
  Value skips;                      // [batch, states]: whether the blank before may be left out
  Value input_lengths, last_state;  // [batch]; the last state is twice the target's length
};

Value Column(Builder& b, Value x, int64_t columns) {
  return AlongDimension(b, x, {x->shape().dimension(0), columns}, 0);
}

// [batch, states] with the states moved by `by` to the right, and `fill` in the gap.
Value Moved(Builder& b, Value x, int64_t by, double fill) {
  int64_t states = x->shape().dimension(1);
  if (std::abs(by) >= states) return Like(b, x, fill);
  return b.Pad(x, ScalarLike(b, x, fill), {0, by}, {0, -by}, {0, 0});
}

// [batch, longest]: the targets, which may stand one after the other in one vector.
Value TargetRows(Builder& b, Value targets, Value lengths, int64_t longest) {
  int64_t batch = lengths->shape().dimension(0);
  targets = b.Convert(targets, kIndex);
  Dimensions shape = {batch, longest};
  if (targets->shape().rank() == 2) return b.SliceInDim(targets, 1, 0, longest);
  // Where each target begins: the sum of the lengths before it.
  Dimensions square = {batch, batch};
  Value is_before = b.Lt(Iota(b, square, 1), Iota(b, square, 0));
  Value before = ZeroUnless(b, is_before, AlongDimension(b, lengths, square, 1));
  Value begin = Sum(b, before, {1});
  Value position = b.Add(AlongDimension(b, begin, shape, 0), Iota(b, shape, 1));
  return TakeRows(b, targets, position);
}

Value StateLabels(Builder& b, Value rows, int64_t blank) {
  int64_t batch = rows->shape().dimension(0), longest = rows->shape().dimension(1);
  return b.Pad(rows, b.ConstantScalar(kIndex, blank), {0, 1}, {0, 1}, {0, longest > 0 ? 1 : 0});
}

CtcProblem MakeCtcProblem(Builder& b, Value log_probabilities, Value targets, Value input_lengths,
                          Value target_lengths, int64_t longest, int64_t blank) {
  CtcProblem p;
  const Dimensions& full = log_probabilities->dimensions();
  p.time = full[0], p.batch = full[1], p.classes = full[2], p.states = 2 * longest + 1;
  p.input_lengths = b.Convert(input_lengths, kIndex);
  target_lengths = b.Convert(target_lengths, kIndex);
  p.last_state = b.Add(target_lengths, target_lengths);
  Value rows = longest == 0 ? b.Zeros(Shape(kIndex, {p.batch, 0}))
                            : TargetRows(b, targets, target_lengths, longest);
  // What stands behind a short target may be anything.
  rows =
      longest == 0
          ? rows
          : ZeroUnless(b, b.Lt(Iota(b, rows->dimensions(), 1), Column(b, target_lengths, longest)),
                       rows);
  p.labels =
      longest == 0 ? b.Full(Shape(kIndex, {p.batch, 1}), blank) : StateLabels(b, rows, blank);
  Value is_label = b.Ne(p.labels, b.Full(p.labels->shape(), blank));
  p.skips = b.And(is_label, b.Ne(p.labels, Moved(b, p.labels, 2, -1)));
  p.log_probabilities = log_probabilities;
  return p;
}

Value LogSumExpOfThree(Builder& b, Value x, Value y, Value z) {
  Value largest = b.Maximum(x, b.Maximum(y, z));
  // Of nothing but zeros the logarithm is minus infinity, not NaN.
  Value origin = b.Select(b.Eq(largest, Like(b, x, -kInfinity)), Like(b, x, 0), largest);
  auto part = [&](Value v) { return b.Exp(b.Subtract(v, origin)); };
  return b.Add(b.Log(b.Add(b.Add(part(x), part(y)), part(z))), origin);
}

// A loop over time that makes [time, batch, states]. `step(b, t, previous, emitted, operands)`
// gives the states at t, where `emitted` is the log probability of each state's label; t runs
// forward or backward through the longest input, and the states elsewhere are -inf.
template <typename Step>
Value OverTime(Builder& b, const CtcProblem& p, bool forward, const Values& operands,
               const Step& step) {
  ElementType type = p.log_probabilities->element_type();
  Value start = b.Full(Shape(type, {p.batch, p.states}), -kInfinity);
  Value all = b.Full(Shape(type, {p.time, p.batch, p.states}), -kInfinity);
  Value steps = b.Reduce(Opcode::kMaximum, p.input_lengths, {0});
  Values carried = {
      b.ConstantScalar(kIndex, int64_t{0}), start, all, steps, p.log_probabilities, p.labels};
  constexpr int64_t kCarried = 6;
  carried.insert(carried.end(), operands.begin(), operands.end());
  std::vector<Shape> shapes;
  for (Value v : carried) shapes.push_back(v->shape());
  auto* condition = b.Region("time_left", shapes, [&](Builder& r, const Values& x) -> Values {
    return {r.Lt(x[0], x[3])};
  });
  auto* body = b.Region("time_step", shapes, [&](Builder& r, const Values& x) -> Values {
    Value zero = r.ConstantScalar(kIndex, int64_t{0}), one = r.ConstantScalar(kIndex, int64_t{1});
    Value t = forward ? x[0] : r.Subtract(r.Subtract(x[3], one), x[0]);
    Value now = r.Reshape(r.DynamicSlice(x[4], {t, zero, zero}, {1, p.batch, p.classes}),
                          {p.batch, p.classes});
    Value emitted = GatherAlong(r, now, x[5], 1);
    Value states = step(r, t, x[1], emitted, Values(x.begin() + kCarried, x.end()));
    Value written =
        r.DynamicUpdateSlice(x[2], r.Reshape(states, {1, p.batch, p.states}), {t, zero, zero});
    Values next = {r.Add(x[0], one), states, written};
    next.insert(next.end(), x.begin() + 3, x.end());
    return next;
  });
  return b.GetTupleElement(b.While(carried, condition, body), 2);
}

Value At(Builder& b, Value t, const Dimensions& dimensions) { return Splat(b, t, dimensions); }

// What the states reach in one step, `by` = 1 forward and -1 backward in the target.
Value Reached(Builder& b, Value previous, Value skips, int64_t by) {
  Value lowest = Like(b, previous, -kInfinity);
  Value skipped = by > 0 ? b.Select(skips, Moved(b, previous, 2, -kInfinity), lowest)
                         : Moved(b, b.Select(skips, previous, lowest), -2, -kInfinity);
  return LogSumExpOfThree(b, previous, Moved(b, previous, by, -kInfinity), skipped);
}

// [time, batch, states]: the log probability of all alignments that end in a state at a time.
Value ForwardStates(Builder& b, const CtcProblem& p) {
  Dimensions shape = {p.batch, p.states};
  Value is_first = b.And(b.Lt(Iota(b, shape, 1), b.Full(Shape(kIndex, shape), int64_t{2})),
                         b.Le(Iota(b, shape, 1), Column(b, p.last_state, p.states)));
  return OverTime(b, p, true, {p.skips, is_first},
                  [&](Builder& r, Value t, Value previous, Value emitted, const Values& x) {
                    Value is_start = r.Eq(t, r.ConstantScalar(kIndex, int64_t{0}));
                    Value first = r.Select(x[1], emitted, Like(r, emitted, -kInfinity));
                    Value later = r.Add(Reached(r, previous, x[0], 1), emitted);
                    return r.Select(is_start, first, later);
                  });
}

// [time, batch, states]: of all that begin in a state at a time and end with the target.
Value BackwardStates(Builder& b, const CtcProblem& p) {
  Dimensions shape = {p.batch, p.states};
  Value state = Iota(b, shape, 1), last = Column(b, p.last_state, p.states);
  Value is_last =
      b.And(b.Le(state, last), b.Ge(b.Add(state, b.Full(state->shape(), int64_t{1})), last));
  Value lengths = Column(b, p.input_lengths, p.states);
  return OverTime(b, p, false, {p.skips, is_last, lengths},
                  [&](Builder& r, Value t, Value previous, Value emitted, const Values& x) {
                    Value next = r.Add(t, r.ConstantScalar(kIndex, int64_t{1}));
                    Value lowest = Like(r, emitted, -kInfinity);
                    Value end = r.Select(x[1], emitted, lowest);
                    Value inner = r.Add(Reached(r, previous, x[0], -1), emitted);
                    Value is_end = r.Eq(At(r, next, shape), x[2]);
                    Value is_inside = r.Lt(At(r, next, shape), x[2]);
                    return r.Select(is_end, end, r.Select(is_inside, inner, lowest));
                  });
}

// The states [time, batch, states] of each sample at the end of its input, and `before` the last
// one of its target; -inf where there is none.
Value AtTheEnd(Builder& b, const CtcProblem& p, Value states, int64_t before) {
  const auto number = [&](int64_t n) { return b.Full(p.last_state->shape(), n); };
  Value time = b.Subtract(p.input_lengths, number(1));
  Value state = b.Subtract(p.last_state, number(before));
  Value is_there = b.And(b.Ge(time, number(0)), b.Ge(state, number(0)));
  Value sample = Iota(b, p.last_state->dimensions(), 0);
  Value place = b.Add(b.Multiply(time, number(p.batch)), sample);
  place = b.Add(b.Multiply(place, number(p.states)), state);
  Value flat = b.Reshape(states, {p.time * p.batch * p.states});
  Value found = GatherAlong(b, flat, ZeroUnless(b, is_there, place), 0);
  return b.Select(is_there, found, Like(b, found, -kInfinity));
}

Value NegativeLogLikelihood(Builder& b, const CtcProblem& p, Value states) {
  Value blank_end = AtTheEnd(b, p, states, 0), label_end = AtTheEnd(b, p, states, 1);
  Value likelihood = LogSumExpOfThree(b, blank_end, label_end, Like(b, blank_end, -kInfinity));
  // An input without time can be an empty target only.
  Value zero = b.Zeros(p.input_lengths->shape());
  Value is_empty = b.And(b.Eq(p.input_lengths, zero), b.Eq(p.last_state, zero));
  return b.Select(is_empty, Like(b, likelihood, 0), b.Negate(likelihood));
}

// The losses, and the forward states as [batch, time, states].
std::pair<Value, Value> CtcLoss(Builder& b, Value log_probabilities, Value targets,
                                Value input_lengths, Value target_lengths, int64_t longest,
                                int64_t blank) {
  CtcProblem p =
      MakeCtcProblem(b, log_probabilities, targets, input_lengths, target_lengths, longest, blank);
  Value states = ForwardStates(b, p);
  return {NegativeLogLikelihood(b, p, states), b.Transpose(states, {1, 0, 2})};
}

// [time, batch, classes]: in each class the states' sums. A product with the labels as one-hot
// vectors.
Value SumOverLabels(Builder& b, const CtcProblem& p, Value x) {
  Dimensions one_hot = {p.batch, p.states, p.classes};
  Value hit = b.Eq(b.BroadcastInDim(p.labels, one_hot, {0, 1}), Iota(b, one_hot, 2));
  hlo::DotAttributes attributes;
  attributes.lhs_batching_dimensions = {1};
  attributes.rhs_batching_dimensions = {0};
  attributes.lhs_contracting_dimensions = {2};
  attributes.rhs_contracting_dimensions = {1};
  Value sums = b.DotGeneral(x, b.Convert(hit, x->element_type()), attributes);
  return b.Transpose(sums, {1, 0, 2});
}

// Each class's probability, less how often the alignments are expected to use it.
Value CtcLossBackward(Builder& b, Value gradient, Value log_probabilities, Value targets,
                      Value input_lengths, Value target_lengths, Value losses, Value states,
                      int64_t longest, int64_t blank, bool zero_infinity) {
  CtcProblem p =
      MakeCtcProblem(b, log_probabilities, targets, input_lengths, target_lengths, longest, blank);
  Dimensions all = {p.time, p.batch, p.states};
  const Dimensions& full = log_probabilities->dimensions();
  Value both = b.Add(b.Transpose(states, {1, 0, 2}), BackwardStates(b, p));
  // Both count the emission.
  Value labels = b.BroadcastInDim(p.labels, all, {1, 2});
  Value emissions = GatherAlong(b, log_probabilities, labels, 2);
  Value posterior = b.Add(b.Subtract(both, emissions), b.BroadcastInDim(losses, all, {1}));
  Value is_possible = b.Ne(both, Like(b, both, -kInfinity));  // what is no number spreads
  Value occupancy = SumOverLabels(b, p, ZeroUnless(b, is_possible, b.Exp(posterior)));
  Value difference = b.Subtract(b.Exp(log_probabilities), occupancy);
  Value result = b.Multiply(difference, b.BroadcastInDim(gradient, full, {1}));
  Value is_infinite = b.Eq(losses, Like(b, losses, kInfinity));
  Value of_infinite = Like(b, result, zero_infinity ? 0 : kNaN);
  result = b.Select(b.BroadcastInDim(is_infinite, full, {1}), of_infinite, result);
  Value inside = b.Lt(Iota(b, full, 0), b.BroadcastInDim(p.input_lengths, full, {1}));
  return ZeroUnless(b, inside, result);
}

// --- The lengths are known here: their maximum is the program's shape, and they are checked

// So many labels the states of a target have room for: few programs serve all batches, at twice of
// what the longest target takes at most.
int64_t Room(int64_t longest, int64_t width) {
  return std::min(width, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(longest))));
}

int64_t CheckLengths(const at::Tensor& log_probabilities, const at::Tensor& targets,
                     at::IntArrayRef input_lengths, at::IntArrayRef target_lengths, int64_t blank) {
  int64_t time = log_probabilities.size(0), batch = log_probabilities.size(1);
  TORCH_CHECK(log_probabilities.numel() > 0, "log_probs tensor must not be empty");
  TORCH_CHECK(0 <= blank && blank < log_probabilities.size(2), "blank must be in label range");
  TORCH_CHECK(static_cast<int64_t>(input_lengths.size()) == batch,
              "input_lengths must be of size batch_size");
  TORCH_CHECK(static_cast<int64_t>(target_lengths.size()) == batch,
              "target_lengths must be of size batch_size");
  TORCH_CHECK(targets.dim() == 1 || targets.dim() == 2,
              "targets must have one or two dimensions, but got ", targets.sizes());
  int64_t longest = 0, total = 0;
  for (int64_t i = 0; i < batch; ++i) {
    TORCH_CHECK(0 <= input_lengths[i] && input_lengths[i] <= time,
                "Expected input_lengths to have value between 0 and ", time, ", but got ",
                input_lengths[i]);
    TORCH_CHECK(target_lengths[i] >= 0,
                "Expected target_lengths to have value at least 0, but got value ",
                target_lengths[i]);
    longest = std::max(longest, target_lengths[i]);
    total += target_lengths[i];
  }
  if (targets.dim() == 1) {
    TORCH_CHECK(targets.numel() == total, "Expected targets to have ", total,
                " elements, the sum of target_lengths, but got ", targets.numel());
    return longest;
  }
  TORCH_CHECK(targets.size(0) == batch && targets.size(1) >= longest,
              "Expected tensor to have size at least [", batch, ", ", longest,
              "], but got targets of size ", targets.sizes());
  return Room(longest, targets.size(1));
}

at::Tensor OnDevice(at::IntArrayRef lengths, const at::Tensor& like) {
  return at::tensor(lengths, at::kLong).to(like.device());
}

using Lengths = at::IntArrayRef;

std::tuple<at::Tensor, at::Tensor> CtcLossOf(const at::Tensor& log_probabilities,
                                             const at::Tensor& targets, Lengths input_lengths,
                                             Lengths target_lengths, int64_t blank,
                                             bool zero_infinity) {
  int64_t longest = CheckLengths(log_probabilities, targets, input_lengths, target_lengths, blank);
  return Record<&CtcLoss>(log_probabilities, targets, OnDevice(input_lengths, targets),
                          OnDevice(target_lengths, targets), longest, blank);
}
at::Tensor CtcLossOfBackward(const at::Tensor& gradient, const at::Tensor& log_probabilities,
                             const at::Tensor& targets, Lengths input_lengths,
                             Lengths target_lengths, const at::Tensor& losses,
                             const at::Tensor& states, int64_t blank, bool zero_infinity) {
  int64_t longest = CheckLengths(log_probabilities, targets, input_lengths, target_lengths, blank);
  return Record<&CtcLossBackward>(
      gradient, log_probabilities, targets, OnDevice(input_lengths, targets),
      OnDevice(target_lengths, targets), losses, states, longest, blank, zero_infinity);
}

std::vector<int64_t> OnHost(const at::Tensor& lengths) {
  at::Tensor host = lengths.to(at::kCPU, at::kLong).contiguous();
  return {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("_ctc_loss", &CtcLossOf);
  m.impl("_ctc_loss_backward", &CtcLossOfBackward);
  m.impl("_ctc_loss.Tensor", [](const at::Tensor& log_probabilities, const at::Tensor& targets,
                                const at::Tensor& input_lengths, const at::Tensor& target_lengths,
                                int64_t blank, bool zero_infinity) {
    return CtcLossOf(log_probabilities, targets, OnHost(input_lengths), OnHost(target_lengths),
                     blank, zero_infinity);
  });
  m.impl(
      "_ctc_loss_backward.Tensor",
      [](const at::Tensor& gradient, const at::Tensor& log_probabilities, const at::Tensor& targets,
         const at::Tensor& input_lengths, const at::Tensor& target_lengths,
         const at::Tensor& losses, const at::Tensor& states, int64_t blank, bool zero_infinity) {
        return CtcLossOfBackward(gradient, log_probabilities, targets, OnHost(input_lengths),
                                 OnHost(target_lengths), losses, states, blank, zero_infinity);
      });
}

}  // namespace torch_xla
