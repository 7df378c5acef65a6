// torch's CPU kernels, called in the middle of recording: on this thread alone, and without what
// the user's program asked of torch around them.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>

// Of the OpenMP runtime and of MKL, if torch is built with them: the calling thread's own numbers
// of threads. MKL's returns the one before; 0 is everyone's.
extern "C" {
[[gnu::weak]] void omp_set_num_threads(int count);
[[gnu::weak]] int MKL_Set_Num_Threads_Local(int count);
}

namespace torch_xla {

// How many threads kernels take that the calling thread calls, while this lives.
class ThreadsOfKernels {
 public:
  explicit ThreadsOfKernels(int count) : before_(SetOpenMp(count)), mkl_before_(SetMkl(count)) {}
  ~ThreadsOfKernels() {
    SetOpenMp(before_);
    SetMkl(mkl_before_);
  }
  ThreadsOfKernels(const ThreadsOfKernels&) = delete;

 private:
  static int SetOpenMp(int count) {
    const int before = at::get_num_threads();  // sets it at a thread's first call
    if (omp_set_num_threads != nullptr) omp_set_num_threads(count);
    return before;
  }
  static int SetMkl(int count) {
    return MKL_Set_Num_Threads_Local == nullptr ? 0 : MKL_Set_Num_Threads_Local(count);
  }
  const int before_, mkl_before_;
};

// A parallel region of OpenMP's on a thread of the user's program would hang those of a child that
// the thread forks later. Work that takes more than one has threads of its own
// (parallel_kernels.h).
class OneThread : ThreadsOfKernels {
 public:
  OneThread() : ThreadsOfKernels(1) {}
};

// What the thread is in the middle of (autograd, a transform, a mode of Python's) is not asked
// about operations that it has recorded already.
class PlainKernels {
 private:
  at::AutoDispatchBelowADInplaceOrView below_;
  c10::impl::ExcludeDispatchKeyGuard modes_{
      c10::DispatchKeySet(
          {c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot,
           c10::DispatchKey::PythonDispatcher, c10::DispatchKey::Functionalize,
           c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchVmapMode,
           c10::DispatchKey::Batched, c10::DispatchKey::VmapMode,
           c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
           c10::DispatchKey::FuncTorchDynamicLayerBackMode, c10::DispatchKey::PreDispatch}) |
      c10::autocast_dispatch_keyset};
};

}  // namespace torch_xla
