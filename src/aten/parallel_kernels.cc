#include "aten/parallel_kernels.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "aten/plain_kernels.h"
#include "process/block_signals.h"
#include "process/fork.h"

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

std::thread ThreadWithoutSignals(std::function<void()> work) {
  const process::BlockSignals blocked;
  return std::thread(std::move(work));
}

// The thread that others give their work to. It stays, as OpenMP's pool would end with it: to make
// both anew takes most of a millisecond.
class KernelThread {
 public:
  // The process's, or the child's that it is: threads do not live on in a child, and what they were
  // doing may be half done. Throws std::system_error where none can be started.
  static KernelThread& OfProcess() {
    static auto* const mutex = new process::Mutex;
    static KernelThread* current = nullptr;
    const std::lock_guard lock(*mutex);
    if (current == nullptr || current->generation_ != process::ForkGeneration())
      current = new KernelThread;
    return *current;
  }

  // Returns when it is done. False, and nothing was done, where it is at another's work.
  bool Run(const std::function<void()>& work) {
    const std::unique_lock turn(turn_, std::try_to_lock);
    if (!turn.owns_lock()) return false;
    std::unique_lock lock(mutex_);
    work_ = &work;
    changed_.notify_all();
    changed_.wait(lock, [&] { return work_ == nullptr; });
    return true;
  }

 private:
  KernelThread() {
    ThreadWithoutSignals([this] { Serve(); }).detach();  // it waits when the process ends
  }

  void Serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return work_ != nullptr; });
      lock.unlock();
      (*work_)();
      lock.lock();
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  const int64_t generation_ = process::ForkGeneration();  // a child may have its parent's number
  std::mutex turn_;                                       // of the one whose work it is
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
};

}  // namespace

bool OnAnotherThread(const std::function<void()>& work) {
  const int threads = KernelThreads();
  if (threads == 1) return false;
  std::exception_ptr error;
  const std::function<void()> run = [&]() noexcept {
    try {
      const ThreadsOfKernels limit(threads);
      work();
    } catch (...) {
      error = std::current_exception();
    }
  };
  try {
    if (!KernelThread::OfProcess().Run(run)) ThreadWithoutSignals(run).join();
  } catch (const std::system_error&) {
    return false;
  }
  if (error) std::rethrow_exception(error);
  return true;
}

}  // namespace torch_xla
