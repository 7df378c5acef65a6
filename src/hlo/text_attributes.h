// Types, constants and attributes in MLIR's textual syntax.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/attributes.h"
#include "hlo/instruction.h"

namespace hlo::text {

std::string Join(const std::vector<std::string>& parts);  // "a, b"
std::string TypeText(const Shape& shape);                 // "tensor<2x?xf32>", "!stablehlo.token"
std::string StringText(std::string_view text);            // quoted, escaped
std::string SymbolText(std::string_view name);            // "@main"
std::string ListText(std::span<const int64_t> values);    // "[1, 2]"
std::string ArrayText(std::span<const int64_t> values);   // "array<i64: 1, 2>"
std::string FloatText(double value, ElementType type);    // "1.000000e+00 : f32"
std::string DictionaryText(const AttributeDictionary& dictionary);

// "dense<[1, 2]> : tensor<2xi32>"; a literal of more than `max_elements` (-1: any) that is no splat
// is elided.
std::string DenseText(const Literal& literal, int64_t max_elements = -1);
// "[[0, 1], [2, 3]]" as dense i64 with that many columns at least.
std::string MatrixText(const std::vector<std::vector<int64_t>>& rows, int64_t columns);

// "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]".
std::string ConvolutionDimensionsText(const ConvolutionDimensions& dimensions);

// The attributes of an instruction as its generic form lists them, without braces: "dimension = 0 :
// i64, is_stable = true". Called computations are the caller's.
std::string GenericAttributes(const Instruction& instruction);

}  // namespace hlo::text
