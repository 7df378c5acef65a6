// What the compiler made of a program, for people: set TORCH_XLA_DUMP to a folder and each
// compilation writes there, numbered in order,
//   NNNN.00-input.mlir      the program as it came in, StableHLO text
//   NNNN.KK-<pass>.mlir     the program after the K-th pass, if that has changed it
//   NNNN.passes             all passes: what each did ("unchanged") and how long it took
//   NNNN.program            the steps with their buffers, and the module after all passes
//   NNNN.K.ll               the LLVM IR of kernel_K, whether it was compiled now or before
// In a world of several processes, "rankR." comes before the number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cpu/pipeline.h"

namespace llvm {
class Module;
}

namespace cpu {

// One compilation's files. Does nothing unless the variable is set; a folder that cannot be written
// to is reported once on stderr.
class Dump {
 public:
  // `rank`: this process's among several, which may share the folder.
  explicit Dump(std::optional<int64_t> rank = {});
  explicit operator bool() const { return !prefix_.empty(); }
  void Input(const hlo::Module& module);
  void AfterPass(const PassRun& run, const hlo::Module& module);
  void Program(const std::string& text) const;
  // Safe to call from several threads with different numbers.
  void Kernel(int64_t number, const llvm::Module& module) const;

 private:
  // The text, unless it is the same as last time.
  bool WriteModule(int number, std::string_view name, const hlo::Module& module);

  std::string prefix_;  // path up to the number; empty: off
  std::string text_;    // of the module as it was written last
  std::string passes_;  // the file so far
};

}  // namespace cpu
