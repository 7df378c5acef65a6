// What a kernel's code is made of, as bytes: composites of equal signatures have equal code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hlo/instruction.h"

namespace cpu {

struct KernelSignature {
  std::string structure;  // operations, types, ranks, axes
  // In the order in which the structure needs them: sizes, the attributes that are places or sizes
  // (limits of slices, paddings, windows), and constants' bits.
  std::vector<int64_t> numbers;
  // Places of numbers that are always in the code: constants of what is computed of one element.
  std::vector<size_t> in_code;

  // All of it.
  std::string ToString() const;
};

// Few bytes for small numbers, and one way only to read what it wrote.
void AppendNumber(std::string& bytes, int64_t number);

// A constant all of whose elements are these bits; none if there are more than one, or more
// than 64.
std::optional<int64_t> BitsOf(const hlo::Literal& literal);

// None if the body holds an attribute that no kernel has.
std::optional<KernelSignature> SignatureOf(const hlo::Instruction& composite);

}  // namespace cpu
