// Which of the processor's instructions the engine may use.
#pragma once

namespace cpu {

// In ascending order; each holds those before it.
enum class Isa {
  kBaseline,  // SSE4.1
  kAvx2,      // with FMA
  kAvx512,    // F, BW, VL, DQ, without those for bf16, f16 and tiles
  kAll,       // what the processor has
};

// TORCH_XLA_CPU_ISA: SSE41, AVX2 or AVX512, in any case; unset or empty is kAll. It is read once,
// and caps oneDNN, the code generator and the kernels of products. Throws hlo::Error
// (kInvalidArgument) for another word.
Isa IsaCap();

// What kernels of our own may be written for: the most that the processor has and the cap allows,
// kAvx512 at most.
Isa KernelIsa();

}  // namespace cpu
