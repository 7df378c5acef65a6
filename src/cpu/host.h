// The CPU that the engine generates code for: the one it runs on, with no more instructions than
// TORCH_XLA_CPU_ISA allows (isa.h).
#pragma once

#include <string>

namespace cpu {

struct HostCpu {
  std::string name;        // LLVM's, "znver4"
  std::string features;    // "+avx2,-avx512f,…"
  int vector_bytes = 16;   // of the widest vector registers
  bool has_masks = false;  // predicated loads and stores of every element width
};
const HostCpu& Host();

}  // namespace cpu
