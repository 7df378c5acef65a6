// The gradient of a weight that is used many times is a sum of products; one product is faster.
#pragma once

#include "hlo/module.h"

namespace passes {

// Replaces dot(a, b) + dot(c, d) + … by dot(concatenate(a, c, …), concatenate(b, d, …)), joined
// along the contracted dimension, where the partial products are larger than what the joined
// operands copy: unrolled recurrent networks, weights shared between layers. Terms have one
// contracted dimension, no batching dimensions, and no other use; other terms of the sum are added
// to the product. The order of summation changes. Returns true if the module changed.
bool JoinSumsOfDots(hlo::Module& module);

}  // namespace passes
