// The engine's own threads. The caller is worker 0; chunks are taken from a counter, so that a
// worker that is not scheduled delays nobody; workers spin shortly before they sleep; a pool used
// before a fork works again in the child (its threads are made anew there).
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace cpu {

class ThreadPool {
 public:
  // `num_threads` counts the caller.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  // Shared by the process; its size is TORCH_XLA_NUM_THREADS, else OMP_NUM_THREADS, else the CPUs
  // that the process may use by its affinity and its cgroups' quotas. Starts no thread before the
  // first ParallelFor.
  static ThreadPool& Default();

  int num_threads() const;

  // Calls body(chunk) for every chunk in [0, num_chunks), at most num_threads() at a time, and
  // returns when all are done. One chunk runs on the caller without any synchronization. Nested and
  // concurrent calls are allowed (a call that finds the pool busy runs on the caller alone). The
  // first exception thrown by a body is rethrown here.
  template <typename F>
  void ParallelFor(int64_t num_chunks, F&& body) {
    Run(
        num_chunks,
        [](void* context, int64_t chunk) {
          (*static_cast<std::remove_reference_t<F>*>(context))(chunk);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
  }
  using Body = void (*)(void* context, int64_t chunk);
  void Run(int64_t num_chunks, Body body, void* context);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cpu
