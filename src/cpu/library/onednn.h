// oneDNN as the engine uses it: one thread per call, because the engine slices the work over its
// own threads.
#pragma once

#include <dnnl.hpp>

#include "process/block_signals.h"

namespace cpu {

// The CPU engine of oneDNN; made once.
const dnnl::engine& OneDnnEngine();
// The instructions that oneDNN may use: the processor's, or fewer by TORCH_XLA_CPU_ISA.
dnnl::cpu_isa OneDnnIsa();
// A stream of the calling thread.
dnnl::stream& OneDnnStream();

// While alive, oneDNN's OpenMP regions of the calling thread have a team of one, and no signal
// interrupts it: a handler that ran amid oneDNN's products for AVX-512, such as Python's for
// Ctrl-C, made them write where they must not (they seem to keep data below the stack, where a
// handler has its frame). The caller's own settings are restored, since the thread may be the
// user's.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;

 private:
  const process::BlockSignals blocked_;
  int previous_;
};

// At least `bytes` of 64-byte aligned memory that belongs to the calling thread, valid until its
// next call.
void* ThreadScratch(size_t bytes);

}  // namespace cpu
