// The short forms of operations and the names of enumerators in MLIR's textual form, as data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "hlo/bytecode_program.h"

namespace hlo::text {

// A short form is what follows an operation's name, as words with blanks between them:
//
//   $                values, separated by commas; possibly none
//   {}               a dictionary of further attributes, if there is one
//   (? , x … ?)      a part that may be missing; it is there if its first word is (and its second,
//                    if that stands for itself)
//   list:name        [1, 2]          64-bit integers
//   int:name         1               a 64-bit integer, int32: one of 32 bits
//   bool:name        true
//   string:name      "a"
//   symbol:name      @a
//   enum:name        LT              an enumerator; enums:name [HIGH, DEFAULT]
//   <format>         e5m2            exponent_bits and mantissa_bits
//   <ranges>         [0:4:2, 1:3]    start_indices, limit_indices and strides
//   <convolution>    [b, f, 0]x[i, o, 0]->[b, f, 0]
//   <window>         stride = [1], pad = [[0, 0]], …
//   <skip>           <…>             anything
//   <constant>       dense<1> : t    `value`, whose type is the result's
//   :                types: (a, b) -> c, or one type for all operands and the result
//   :result          the result's type alone
//   :each            types of the operands, which are those of the results
//   :select          the types of the predicate and of what is selected
//   :uses            types of the operands; no results
//
// Everything else stands for itself. The names are those of the operation's attributes.
std::string_view ShortForm(std::string_view operation);  // "" if there is none

// What an attribute of an operation is if it is not there: one, false or a pair of zeros for each
// element of the attribute `like`, or, without it, the number -1. VHLO always states it.
struct Default {
  enum class Value : uint8_t { kOnes, kFalse, kZeroPairs, kMinusOne };
  std::string_view operation, attribute;
  Value value;
  std::string_view like;
};
std::span<const Default> Defaults();

// An attribute that an operation cannot be without: nobody may guess it.
struct Required {
  std::string_view operation;  // without its dialect: "concatenate"
  std::string_view attribute;
  std::string_view written;  // the attribute of the text that states it
};
std::span<const Required> RequiredAttributes(std::string_view operation);

struct Enumeration {
  std::string_view name;                          // "comparison_direction"
  bytecode::AttributeKind kind;                   //
  int64_t first;                                  // the first enumerator's number
  std::span<const std::string_view> enumerators;  // "EQ", …
};
const Enumeration* FindEnumeration(std::string_view name);  // null if there is none
// That of an operation's attribute, such as "rng_distribution" or "compare_type".
const Enumeration& EnumerationOfAttribute(std::string_view attribute);
// An enumerator of instructions' attributes, which count from 0, as it is written.
template <typename T>
std::string_view EnumeratorText(std::string_view enumeration, T value) {
  return FindEnumeration(enumeration)->enumerators[static_cast<size_t>(value)];
}

}  // namespace hlo::text
