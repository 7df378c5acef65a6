// Compiling with cuDNN's kernels of attention (passes/cudnn_attention.h) where they serve, and
// without where cuDNN refuses.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "hlo/error.h"
#include "hlo/module.h"
#include "process/fork.h"

namespace lazy {

// Whether an error of XLA's compiler is cuDNN's no: it names the library, as XLA does with the
// source of a call that cuDNN failed, and is neither about memory nor about the compilation being
// broken off.
bool IsCudnnRefusal(const hlo::Error& error);

// What is known of one compiler. Any thread.
class CudnnAttention {
 public:
  // The compiler of this process's devices.
  static CudnnAttention& OfDevices();

  // Has `compile` compile the module with the kernels, and where cuDNN refuses, which counts in
  // CudnnAttentionRefused, without. The kinds of attention that were refused are not tried again:
  // of a program's kinds those that no program has been compiled with, or all. If the program
  // without them fails as well, its error is thrown and no kind blamed. Throws what `compile`
  // throws.
  void Compile(std::unique_ptr<hlo::Module> module,
               const std::function<void(std::unique_ptr<hlo::Module>)>& compile);

 private:
  using Kinds = std::set<std::string>;
  bool IsRefused(const std::string& kind);
  void NoteServed(const Kinds& kinds);
  void NoteRefused(const Kinds& kinds);

  process::Mutex mutex_;
  Kinds served_, refused_;
};

}  // namespace lazy
