// Compiling on a thread of its own, while the same graph is interpreted (interpreter.h). One
// program at a time, with the lowest priority. The thread knows no graph, no lock of the layer's
// and nothing of the interpreter's: it takes a program that is lowered already, and leaves it
// compiled until it is asked for. So it never decides what runs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lazy/program_cache.h"
#include "lazy/program_compile.h"

namespace lazy {

// Everything but Close under SyncMutex.
class BackgroundCompiler {
 public:
  static BackgroundCompiler& Get();

  // Compiles from now on, unless TORCH_XLA_BACKGROUND_COMPILE is 0. For a host program that
  // promises to Close before the process exits: a compile makes static objects of the compiler's
  // and its libraries', which an exit destroys, so it must have ended before. Python's module
  // promises; without one, graphs are compiled by whoever needs them. A program that embeds Python
  // may exit without ending it, so an exit by the main thread, if that has called this or Start,
  // closes, too.
  void Open();
  // Has the program compiled. Where too many wait or are kept, the oldest are given up; after
  // Close, all are. Throws std::system_error where there is no thread, and nothing has changed
  // then.
  void Start(uint64_t hash, LoweredProgram program);
  // The program that serves the assignment, if it was started: one that is being compiled is waited
  // for, and one that waits is compiled by the caller. Empty where there is none, or it could not
  // be compiled: a compile by the caller then says why.
  std::shared_ptr<CachedProgram> Take(uint64_t hash, const std::vector<uint64_t>& signature,
                                      const Assignment& assignment);
  // Returns when nothing waits or is being compiled.
  void Finish();
  // Gives up all that there are; returns when the thread has ended. Before a fork, and where what
  // was started is for another runtime.
  void Stop();
  // Before the process exits: nothing is compiled from now on, and nothing is being compiled when
  // it returns. Without SyncMutex, whose holder may wait for the exiting thread.
  void Close();
  // Whether graphs are compiled here at all.
  bool is_enabled() const { return is_enabled_; }

 private:
  struct Job;
  using Jobs = std::list<std::shared_ptr<Job>>;
  BackgroundCompiler() = default;
  Jobs::iterator Find(uint64_t hash, const std::vector<uint64_t>& signature,
                      const Assignment& assignment);
  void Run();
  std::shared_ptr<Job> Next();
  void DropOldest();
  void AwaitCompiled(const Job& job);
  void AwaitIdle(std::unique_lock<std::mutex>& lock);

  std::atomic<bool> is_enabled_ = false;  // cleared under mutex_
  std::thread thread_;
  // Of the oldest first. The list is the caller's; the states of its jobs, and what follows, are
  // under mutex_.
  Jobs jobs_;
  std::mutex mutex_;  // no forked child finds it locked: a fork stops the thread first
  std::condition_variable changed_;
  Jobs waiting_;
  bool is_compiling_ = false;
  bool stops_ = false;
};

}  // namespace lazy
