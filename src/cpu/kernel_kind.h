// The kinds of composites that the engine makes of a program's operations, one row each: all that
// differs between them beside their code.
#pragma once

#include <cstdint>
#include <string_view>

#include "cpu/emit/kernel_emitter.h"
#include "hlo/module.h"

namespace cpu {

struct KernelKind {
  // How a composite becomes a step of the program.
  enum class Step {
    kKernel,      // its code is called with its operands and results
    kUpdate,      // the same, after each result was copied from the operand that it updates
    kComparator,  // a library routine, which calls its code for pairs of elements
    kLibrary,     // a library routine (library_call.h)
  };

  std::string_view name;  // the composite's
  Step step;
  std::string_view category;      // in profiles
  std::string_view step_name;     // in profiles, followed by a number
  KernelEmitter* emit = nullptr;  // null if it has no code
  // Nanoseconds for an element, roughly, by which work is divided among threads; null if it has no
  // code.
  double (*element_cost)(const hlo::Computation& body) = nullptr;
  // Whether result `result` may be written to the memory of operand `operand`, which has as many
  // bytes and is an operand once. Null: never.
  bool (*may_overwrite)(const hlo::Instruction& composite, int64_t operand,
                        int64_t result) = nullptr;
};

extern const KernelKind kLoopKernel, kReduceKernel, kScanKernel, kScatterKernel, kSortKernel,
    kDotCall, kConvolutionCall, kAttentionCall, kTopKCall;

// Null if the instruction is no composite of the engine's. Throws hlo::Error(kInternal) for a kind
// that is not there.
const KernelKind* KindOf(const hlo::Instruction& instruction);

// True if the instruction runs as, or with, generated code.
bool NeedsKernel(const hlo::Instruction& instruction);

// The operation that a composite is for: kScatterKernel's, with what feeds its updates, and
// kSortKernel's.
const hlo::Instruction* WrappedBy(const hlo::Instruction& composite);

}  // namespace cpu
