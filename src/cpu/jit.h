// From LLVM IR to callable code: optimize and emit an object file; load objects into this process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llvm {
class Module;
}

namespace cpu {

// Runs the engine's cheap pipeline over the module (its loops are already vectorized) and returns
// an ELF object for the host CPU. Thread-safe for modules of different contexts.
std::string EmitObject(llvm::Module& module);
// All of the module, as bytes: modules of the same bytes compile to the same code.
std::string Bitcode(const llvm::Module& module);
// Gives the module the host's triple and data layout.
void PrepareModule(llvm::Module& module);

// Loaded machine code.
class LoadedCode {
 public:
  // Throws hlo::Error(kInvalidArgument) if an object is malformed or needs an unknown function.
  explicit LoadedCode(const std::vector<std::string>& objects);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;

  // Null if there is none of that name.
  void* Find(std::string_view symbol) const;
  // Whole pages.
  int64_t bytes() const;

 private:
  void Load(const std::vector<std::string>& objects);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cpu
