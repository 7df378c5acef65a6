// Loops of a program over whole arrays, until no element changes any more.
#pragma once

#include <functional>

#include "aten/lowering.h"

namespace torch_xla {

struct Iteration {
  const char* name;        // of the loop's computations
  double most_steps;       // then it ends, whatever still changes
  Value begins = nullptr;  // a predicate of rank 0: whether there is a first step; null: yes
};

// Gives which elements changed, in front, and the next state. `step` is the number of the step, of
// rank 0 and f64, from 1 on.
using IterationStep = std::function<Values(Builder& b, Value step, const Values& state)>;

// The state after the last step.
Values UntilSettled(Builder& b, const Iteration& iteration, const Values& start,
                    const IterationStep& step);

// `while (goes_on(state)) state = step(state)` of each element by itself: both are element-wise, of
// arrays of one shape. An engine may run it so, rather than over whole arrays until the last is
// done; ours does where but one of the results is used.
Values EachWhile(Builder& b, const char* name, const Values& start,
                 const std::function<Value(Builder& b, const Values& state)>& goes_on,
                 const std::function<Values(Builder& b, const Values& state)>& step);

}  // namespace torch_xla
