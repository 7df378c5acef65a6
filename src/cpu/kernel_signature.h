// What a kernel's code is made of, as bytes: composites of equal signatures have equal code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hlo/module.h"

namespace cpu {

struct KernelSignature {
  std::string structure;  // operations, types, ranks, axes, constants
  // In the order in which the structure needs them: sizes, and the attributes that are places or
  // sizes (limits of slices, paddings, windows).
  std::vector<int64_t> numbers;

  // All of it.
  std::string ToString() const;
};

// None if the body holds an attribute that no kernel has.
std::optional<KernelSignature> SignatureOf(const hlo::Instruction& composite);

}  // namespace cpu
