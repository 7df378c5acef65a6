// Well-typed programs made from bytes: any bytes give one. Most operations, element types, shapes
// (sizes 0 and 1 among them), control flow, and the chains that fusion and the other passes look
// for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hlo/module.h"

namespace fuzz {

struct RandomProgram {
  std::unique_ptr<hlo::Module> module;
  std::vector<hlo::Literal> arguments;
};

RandomProgram MakeRandomProgram(std::span<const uint8_t> bytes);

// Arguments of the module's entry that a seed determines: small numbers, and now and then extremes,
// infinities and NaN.
std::vector<hlo::Literal> MakeArguments(const hlo::Module& module, unsigned seed);

// The bytes that a test without a fuzzer uses.
std::vector<uint8_t> BytesOfSeed(unsigned seed, size_t size);

}  // namespace fuzz
