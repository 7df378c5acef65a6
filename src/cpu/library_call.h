// Operations that the engine binds to a routine instead of emitting code: contractions and
// convolutions (oneDNN), LAPACK, FFT, sort, random bits, custom calls.
#pragma once

#include <cstdint>
#include <memory>

#include "cpu/executable.h"
#include "hlo/instruction.h"

namespace cpu {

struct CallContext {
  ThreadPool& threads;
  const RunOptions& options;
  void* scratch;  // scratch_bytes() of it, 64-byte aligned
};

// One bound instruction; immutable, safe to run from several threads.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  virtual int64_t scratch_bytes() const { return 0; }
  // Dense row-major buffers, one per operand, and one per result (a tuple's elements in order).
  // Throws hlo::Error.
  virtual void Run(const CallContext& context, const void* const* operands,
                   void* const* results) const = 0;
  virtual std::string Description() const = 0;
};

// Null if no routine does this instruction. A composite may wrap a contraction with its epilogue
// (bias, activation, residual) in its called computation.
std::unique_ptr<LibraryCall> BindLibraryCall(const hlo::Instruction& instruction);

}  // namespace cpu
