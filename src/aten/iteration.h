// Loops of a program over whole arrays, until no element changes any more.
#pragma once

#include <functional>

#include "aten/lowering.h"

namespace torch_xla {

struct Iteration {
  const char* name;         // of the loop's computations
  double most_steps;        // then it ends, whatever still changes
  int steps_at_a_time = 1;  // in one pass through memory: a settled element stays as it is
  Value begins = nullptr;   // a predicate of rank 0: whether there is a first step; null: yes
};

// Gives which elements changed, in front, and the next state. `step` is the number of the step, of
// rank 0 and f64, from 1 on.
using IterationStep = std::function<Values(Builder& b, Value step, const Values& state)>;

// The state after the last step.
Values UntilSettled(Builder& b, const Iteration& iteration, const Values& start,
                    const IterationStep& step);

}  // namespace torch_xla
