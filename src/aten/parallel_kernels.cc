#include "aten/parallel_kernels.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <thread>

#include "aten/plain_kernels.h"

namespace torch_xla {
namespace {

// As torch is set to, and no more than the engine is (docs/scaling.md).
int KernelThreads() {
  const int of_torch = at::get_num_threads();
  // Once, as the engine reads it: other threads may change the environment later.
  static const int of_engine = [] {
    const char* variable = std::getenv("TORCH_XLA_NUM_THREADS");
    return variable == nullptr ? 0 : std::atoi(variable);
  }();
  return of_engine > 0 ? std::min(of_torch, of_engine) : of_torch;
}

}  // namespace

bool OnAnotherThread(const std::function<void()>& work) {
  const int threads = KernelThreads();
  if (threads == 1) return false;
  std::exception_ptr error;
  const auto run = [&]() noexcept {
    try {
      const ThreadsOfKernels limit(threads);
      work();
    } catch (...) {
      error = std::current_exception();
    }
  };
  try {
    std::thread(run).join();
  } catch (const std::system_error&) {
    return false;
  }
  if (error) std::rethrow_exception(error);
  return true;
}

}  // namespace torch_xla
