// Rows of what a loop of the device goes through: along dimension 0, at a place that is data.
#pragma once

#include <span>
#include <vector>

#include "aten/lowering.h"

namespace torch_xla {

// x[index].
Value TakeRow(Builder& b, Value x, Value index);
// x with `row` in place of x[index]; in the body of a loop in x's own memory.
Value PutRow(Builder& b, Value x, Value row, Value index);

std::vector<Shape> ShapesOf(std::span<const Value> values);

}  // namespace torch_xla
