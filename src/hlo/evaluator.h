// The reference evaluator: every operation as plain, slow, obviously right code over literals. The
// oracle of the engine's tests, and the constant folder's arithmetic.
#pragma once

#include <vector>

#include "hlo/module.h"

namespace hlo {

// Runs the entry on one device (replica 0, partition 0). Collectives behave as in a world of one;
// infeed, outfeed, send, recv, dynamic-shape operations that need runtime shapes where a result's
// shape is dynamic, and unknown custom calls throw Error(kUnimplemented).
std::vector<Literal> Evaluate(const Module& module, const std::vector<Literal>& arguments);
std::vector<Literal> EvaluateComputation(const Computation& computation,
                                         const std::vector<Literal>& arguments);
// One instruction: its value, or its values for a tuple, from its operands' values. Here and above
// an operand, argument or result of tuple shape stands as its leaves, in order; a token is a leaf
// without data. Throws Error (kInvalidArgument) for values of other shapes than the program's.
std::vector<Literal> EvaluateInstruction(const Instruction& instruction,
                                         const std::vector<Literal>& operands);

}  // namespace hlo
