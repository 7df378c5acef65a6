// What a value is known to be, for rewrites that depend on it.
#pragma once

#include <optional>

#include "hlo/instruction.h"

namespace passes {

// The scalar constant that fills `value`: a constant with equal elements, or one broadcast. Null
// literal otherwise. Signed zeros and NaN payloads are kept apart.
std::optional<hlo::Literal> SplatOf(const hlo::Instruction* value);

// The number that fills an integer, predicate or real `value`.
std::optional<double> NumberOf(const hlo::Instruction* value);

// True if every element is +0 (for floats: not -0), or -0.
bool IsPositiveZero(const hlo::Instruction* value);
bool IsNegativeZero(const hlo::Instruction* value);
// True if every bit of every element of an integer or predicate is set.
bool IsAllOnes(const hlo::Instruction* value);

// True if no element of a real `value` can be -0.
bool IsNeverNegativeZero(const hlo::Instruction* value);

// True if every value of `from` is a value of `to`: s8 of s32 and of f32, bf16 of f32, pred of all.
bool Embeds(hlo::ElementType from, hlo::ElementType to);

}  // namespace passes
