// Numbers of MLIR's textual form and the bits that they are as numbers of a type.
#pragma once

#include <cstdint>

#include "hlo/element_type.h"
#include "hlo/text_lexer.h"

namespace hlo::text {

// A number as it is written: what it is worth depends on its type.
struct Number {
  bool negative = false;
  Token token;
};

Number TakeNumber(Lexer& lexer);

// Without its sign. These throw bytecode::PositionError if the number is not one of the type.
uint64_t Magnitude(const Number& number);
// The bits of an integer, sign-extended if the type has a sign.
int64_t IntegerBits(const Number& number, int width, bool is_signed);
// The bits of a real number. Hexadecimal digits are the bits themselves.
uint64_t RealBits(const Number& number, ElementType type);

}  // namespace hlo::text
