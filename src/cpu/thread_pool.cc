#include "cpu/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "hlo/error.h"
#include "process/block_signals.h"
#include "process/fork.h"
#include "process/limits.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cpu {
namespace {

// Long enough to bridge the gap between two parallel loops of one program, short enough that an
// idle process does not show up in `top`.
constexpr std::chrono::microseconds kSpin{30};

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void FutexWait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr,
          nullptr, 0);
}

void FutexWake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr,
          nullptr, 0);
}

// Spins until `ready()` or the time is up; true when ready.
template <typename Ready>
bool Spin(Ready ready) {
  auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready()) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

int DefaultThreads() {
  for (const char* name : {"TORCH_XLA_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* text = std::getenv(name);
    int threads = text == nullptr ? 0 : std::atoi(text);
    if (threads > 0) return std::min(threads, 1024);
  }
  return process::UsableCpus();
}

}  // namespace

// A job is open to workers while the gate's open bit is set. A worker joins by a compare-and-swap
// that raises the gate's count of active workers, so a worker that wakes after the job was closed
// takes no part in it, and the caller waits only for those that joined.
struct ThreadPool::State {
  static constexpr uint32_t kActiveMask = 0x7ff;
  static constexpr uint32_t kOpen = 0x800;
  static constexpr uint32_t kEpoch = 0x1000;

  explicit State(int threads) : num_threads(threads) {}

  const int num_threads;
  alignas(64) std::atomic<uint32_t> gate{0};  // epoch, open bit, active workers
  std::atomic<uint32_t> sleepers{0};
  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) std::atomic<bool> busy{false};
  std::atomic<uint32_t> done{0};
  std::atomic<uint32_t> fork_generation{0};
  std::atomic<bool> stop{false};

  Body body = nullptr;
  void* context = nullptr;
  int64_t num_chunks = 0;
  std::atomic<bool> failed{false};
  std::exception_ptr failure;

  std::vector<pthread_t> threads;

  void TakeChunks();
  void WorkerLoop();
  void StartThreads();
  void JoinThreads();
  void RunJob(int64_t chunks, Body body, void* context);
  void WaitForWorkers(uint32_t generation);
  void ResetAfterFork();
};

namespace {

// Pools alive in this process: a forked child has none of its parent's threads, and was perhaps
// forked inside a parallel loop, by its body.
class Registry {
 public:
  static Registry& Get() {
    static Registry* registry = new Registry;
    return *registry;
  }
  process::Mutex mutex;
  std::set<void*> states;
  void (*reset)(void*) = nullptr;

 private:
  Registry() {
    static constexpr process::ForkHooks kHooks{.child = [] {
      for (void* state : Get().states) Get().reset(state);
    }};
    process::AtFork(kHooks);
  }
};

}  // namespace

void ThreadPool::State::TakeChunks() {
  while (true) {
    int64_t chunk = next.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= num_chunks) return;
    try {
      body(context, chunk);
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
      next.store(num_chunks, std::memory_order_relaxed);
      return;
    }
  }
}

void ThreadPool::State::WorkerLoop() {
#if defined(__x86_64__)
  _mm_setcsr(0x1f80);  // the default environment, not the creator's: subnormals are kept
#endif
  uint32_t seen = gate.load() / kEpoch - 1;
  while (!stop.load(std::memory_order_relaxed)) {
    uint32_t value = gate.load(std::memory_order_acquire);
    auto has_job = [&] {
      value = gate.load(std::memory_order_acquire);
      return ((value & kOpen) != 0 && value / kEpoch != seen) ||
             stop.load(std::memory_order_relaxed);
    };
    if (!Spin(has_job)) {
      sleepers.fetch_add(1);
      if (!has_job()) FutexWait(gate, value);
      sleepers.fetch_sub(1);
      continue;
    }
    if ((value & kOpen) == 0 || value / kEpoch == seen) continue;
    if (!gate.compare_exchange_strong(value, value + 1, std::memory_order_acq_rel)) continue;
    seen = value / kEpoch;
    {
      const process::NoForkOfCaller no_fork;
      TakeChunks();
    }
    uint32_t before = gate.fetch_sub(1, std::memory_order_acq_rel);
    if ((before & kOpen) == 0 && (before & kActiveMask) == 1) {
      done.fetch_add(1);
      FutexWake(done, 1);
    }
  }
}

void ThreadPool::State::StartThreads() {
  threads.reserve(num_threads);  // nothing throws once a thread runs
  const process::BlockSignals blocked;
  for (int i = 1; i < num_threads; ++i) {
    pthread_t thread;
    auto main = [](void* state) -> void* {
      static_cast<State*>(state)->WorkerLoop();
      return nullptr;
    };
    if (pthread_create(&thread, nullptr, main, this) != 0) break;  // fewer threads also work
    threads.push_back(thread);
  }
}

void ThreadPool::State::JoinThreads() {
  stop.store(true);
  gate.fetch_add(kEpoch);
  FutexWake(gate, INT_MAX);
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
}

void ThreadPool::State::WaitForWorkers(uint32_t generation) {
  auto finished = [&] { return (gate.load(std::memory_order_acquire) & kActiveMask) == 0; };
  if (!Spin(finished)) {
    while (true) {
      uint32_t value = done.load();
      if (finished()) break;
      FutexWait(done, value);
    }
  }
  if (fork_generation.load() != generation) {
    throw hlo::Error(hlo::ErrorCode::kInternal,
                     "the process was forked inside a parallel loop: the chunks of the other "
                     "threads are lost in the child");
  }
}

void ThreadPool::State::RunJob(int64_t chunks, Body new_body, void* new_context) {
  if (threads.empty()) StartThreads();
  uint32_t generation = fork_generation.load();
  body = new_body;
  context = new_context;
  num_chunks = chunks;
  failed.store(false, std::memory_order_relaxed);
  next.store(0, std::memory_order_relaxed);
  gate.store((gate.load(std::memory_order_relaxed) / kEpoch + 1) * kEpoch + kOpen);
  if (sleepers.load() > 0) {
    FutexWake(gate, static_cast<int>(std::min<int64_t>(chunks - 1, INT_MAX)));
  }
  TakeChunks();
  gate.fetch_and(~kOpen, std::memory_order_acq_rel);
  WaitForWorkers(generation);
}

void ThreadPool::State::ResetAfterFork() {
  // The handles name threads of the parent: forgotten, not joined. Nothing is freed here.
  threads.clear();
  gate.store(0);
  sleepers.store(0);
  busy.store(false);
  fork_generation.fetch_add(1);
}

ThreadPool::ThreadPool(int num_threads)
    : state_(std::make_unique<State>(std::clamp(num_threads, 1, 1024))) {
  Registry& registry = Registry::Get();
  std::lock_guard lock(registry.mutex);
  registry.reset = [](void* state) { static_cast<State*>(state)->ResetAfterFork(); };
  registry.states.insert(state_.get());
}

ThreadPool::~ThreadPool() {
  {
    Registry& registry = Registry::Get();
    std::lock_guard lock(registry.mutex);
    registry.states.erase(state_.get());
  }
  state_->JoinThreads();
}

ThreadPool& ThreadPool::Default() {
  // Never destroyed: threads may still compute while static objects go.
  static ThreadPool* pool = new ThreadPool(DefaultThreads());
  return *pool;
}

int ThreadPool::num_threads() const { return state_->num_threads; }

void ThreadPool::Run(int64_t num_chunks, Body body, void* context) {
  bool alone = num_chunks <= 1 || state_->num_threads == 1;
  if (alone || state_->busy.exchange(true, std::memory_order_acquire)) {
    for (int64_t chunk = 0; chunk < num_chunks; ++chunk) body(context, chunk);
    return;
  }
  const process::NoFork no_fork;
  struct Release {
    std::atomic<bool>& busy;
    ~Release() { busy.store(false, std::memory_order_release); }
  } release{state_->busy};
  state_->RunJob(num_chunks, body, context);
  if (state_->failed.load(std::memory_order_relaxed)) {
    std::exception_ptr failure = std::exchange(state_->failure, nullptr);
    std::rethrow_exception(failure);
  }
}

}  // namespace cpu
