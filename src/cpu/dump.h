// What the compiler made of a program, for people: set TORCH_XLA_DUMP to a folder and each
// compilation writes there, numbered in order,
//   NNNN.program   the steps with their buffers, and the module after all passes
//   NNNN.K.ll      the LLVM IR of the kernels that thread K emitted
#pragma once

#include <string>

namespace llvm {
class Module;
}

namespace cpu {

// One compilation's files. Does nothing unless the variable is set; a folder that cannot be written
// to is reported once on stderr.
class Dump {
 public:
  Dump();
  explicit operator bool() const { return !prefix_.empty(); }
  void Program(const std::string& text) const;
  // Safe to call from several threads with different numbers.
  void Kernels(int thread, const llvm::Module& module) const;

 private:
  std::string prefix_;  // path up to the number; empty: off
};

}  // namespace cpu
