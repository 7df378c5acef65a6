#include "pjrt/plugin/queue.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "process/block_signals.h"
#include "process/fork.h"

namespace pjrt::plugin {

struct Queue::State {
  const int64_t generation = process::ForkGeneration();
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  size_t unfinished = 0;
  bool stopping = false;
  std::thread thread;

  void Run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return stopping || !tasks.empty(); });
      if (tasks.empty()) return;
      auto task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      {
        const process::NoFork no_fork;
        task();
        task = nullptr;  // what it holds is released outside the lock too
      }
      lock.lock();
      --unfinished;
    }
  }
};

Queue::Queue() : state_(new State) {}

// In a forked child the thread is gone, and the mutex may be held by nobody: that state is left
// behind.
Queue::State& Queue::Current() const {
  State* state = state_.load(std::memory_order_acquire);
  if (state->generation == process::ForkGeneration()) return *state;
  auto fresh = std::make_unique<State>();
  if (state_.compare_exchange_strong(state, fresh.get())) return *fresh.release();
  return *state;  // another thread was faster
}

Queue::~Queue() {
  State* state = state_.load();
  if (state->generation != process::ForkGeneration()) return;
  {
    std::lock_guard lock(state->mutex);
    state->stopping = true;
  }
  state->changed.notify_all();
  if (state->thread.joinable()) {
    // The last reference to a client may go away on its own queue's thread, which then still needs
    // the state.
    if (state->thread.get_id() == std::this_thread::get_id()) {
      state->thread.detach();
      return;
    }
    const process::MayFork waiting;
    state->thread.join();
  }
  delete state;
}

void Queue::Push(std::function<void()> task) {
  State& state = Current();
  {
    std::lock_guard lock(state.mutex);
    if (!state.thread.joinable()) {
      const process::BlockSignals blocked;
      state.thread = std::thread([&state] { state.Run(); });
    }
    state.tasks.push_back(std::move(task));
    ++state.unfinished;
  }
  state.changed.notify_one();
}

bool Queue::idle() const {
  State& state = Current();
  std::lock_guard lock(state.mutex);
  return state.unfinished == 0;
}

}  // namespace pjrt::plugin
