#include "process/fork.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <utility>

#include "process/sanitizers.h"

namespace process {
namespace {

// Whether a thread is inside. It says so by a plain store into its own line of memory, and then
// looks whether the library is closed; only a fork reads what all have said.
struct alignas(64) Entry {
  std::atomic<bool> is_taken{false};
  std::atomic<int32_t> inside{0};
};
constinit std::array<Entry, 1024> entries;
std::atomic<size_t> entries_used{0};  // those behind were never taken
constinit Entry shared_entry;         // counts the threads that found none of their own

// Whether a fork is under way, and how often a thread has left meanwhile.
std::atomic<int32_t> closed{0}, departures{0};
std::atomic<int64_t> generation{0};

struct ThisThread {
  int no_forks = 0;
  bool is_counted = false;  // in its entry
  Entry* entry = nullptr;
};
constinit thread_local ThisThread self;

// Of the fork that the thread prepares: handlers are registered several times, and act once.
struct OwnFork {
  int hooks = 0, handlers = 0;
  size_t num_hooks = 0;
  ThisThread before;
};
constinit thread_local OwnFork own_fork;

// A thread that ends gives its entry back, after the destructors of its variables.
pthread_key_t entry_key;
bool has_entry_key = false;
void GiveEntryBack(void* entry) {
  self.entry = nullptr;
  static_cast<Entry*>(entry)->is_taken = false;
}

[[gnu::noinline]] Entry* TakeEntry() {
  for (size_t i = 0; has_entry_key && i < entries.size(); ++i) {
    size_t used = entries_used.load();
    while (used <= i && !entries_used.compare_exchange_weak(used, i + 1)) {
    }
    Entry& entry = entries[i];
    if (entry.is_taken.load(std::memory_order_relaxed) || entry.is_taken.exchange(true)) continue;
    if (pthread_setspecific(entry_key, &entry) == 0) return &entry;
    entry.is_taken = false;
    break;
  }
  return &shared_entry;
}

// A thread's store and its look at `closed` must not change places. To keep the processor from it
// is slow. Where the kernel can do so for all threads at once, a fork asks it to, and the threads
// only keep the compiler from it. ThreadSanitizer does not see what the kernel does.
std::atomic<bool> kernel_orders{false};
std::atomic<bool> kernel_refused{false};  // to do so, after it had been willing

long Membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

// Before other parts of the library are initialized, which may lock a Mutex.
__attribute__((constructor(101))) void Initialize() {
  has_entry_key = pthread_key_create(&entry_key, &GiveEntryBack) == 0;
  const long commands = Membarrier(MEMBARRIER_CMD_QUERY);
  kernel_orders =
      !kThreadSanitizer && commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0;
}

// After it, who enters sees that the library is closed, and who is inside is seen.
void OrderThreads() {
  // A thread may have been stopped between reading what it may rely on and its store.
  constexpr auto kStoreArrives = std::chrono::milliseconds(10);
  if (kernel_refused) return std::this_thread::sleep_for(kStoreArrives);
  if (!kernel_orders || Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
  // The process has to register, which it does at its first fork.
  if (Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
      Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) {
    return;
  }
  // Forbidden since the library was loaded. From now on the threads do it; a store that is under
  // way arrives in far less time than this.
  kernel_refused = true;
  kernel_orders = false;
  std::this_thread::sleep_for(kStoreArrives);
}

inline void Say(bool is_inside) {
  self.is_counted = is_inside;
  if (self.entry == &shared_entry) [[unlikely]] {
    shared_entry.inside.fetch_add(is_inside ? 1 : -1);
  } else if (kernel_orders.load(std::memory_order_relaxed)) [[likely]] {
    self.entry->inside.store(is_inside, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    self.entry->inside.store(is_inside);
  }
}

[[gnu::noinline]] void WakeCloser() {
  departures.fetch_add(1);
  departures.notify_all();
}

inline void Leave() {
  Say(false);
  if (closed.load() != 0) [[unlikely]]
    WakeCloser();
}

[[gnu::noinline]] void EnterAfterFork() {
  do {
    Leave();
    closed.wait(1);
    Say(true);
  } while (closed.load() != 0);
}

// As readers enter under a lock that lets the writer pass first.
inline void Enter() {
  if (self.entry == nullptr) [[unlikely]]
    self.entry = TakeEntry();
  Say(true);
  if (closed.load() != 0) [[unlikely]]
    EnterAfterFork();
}

std::span<Entry> UsedEntries() { return {entries.data(), entries_used.load()}; }

bool IsAnyoneInside() {
  return shared_entry.inside != 0 ||
         std::ranges::any_of(UsedEntries(), [](const Entry& entry) { return entry.inside != 0; });
}

void Close() {
  own_fork.before = self;
  if (self.is_counted) Leave();
  while (closed.exchange(1) != 0) closed.wait(1);
  OrderThreads();
  for (int32_t seen = departures.load(); IsAnyoneInside(); seen = departures.load()) {
    departures.wait(seen);
  }
  self.no_forks = 1;  // what other handlers call on this thread finds it open
}

void Open() {
  self.no_forks = own_fork.before.no_forks;
  if (own_fork.before.is_counted) Say(true);
  closed.store(0);
  closed.notify_all();
}

// Others are not here, nor what they said at the door.
void ForgetOthers() {
  for (Entry& entry : UsedEntries()) {
    entry.inside = 0;
    entry.is_taken = &entry == self.entry;
  }
  shared_entry.inside = 0;
}

std::array<std::atomic<const ForkHooks*>, 16> hooks;
std::atomic<size_t> num_hooks{0};

void Call(size_t place, void (*ForkHooks::*hook)()) {
  const ForkHooks* one = hooks[place].load();
  if (one != nullptr && one->*hook != nullptr) (one->*hook)();
}

void Prepare() {
  if (own_fork.handlers++ > 0) return;
  PrepareFork();
  Close();
}

void Parent() {
  if (--own_fork.handlers > 0) return;
  Open();
  EndForkInParent();
}

void Child() {
  if (--own_fork.handlers > 0) return;
  ForgetOthers();
  Open();
  own_fork.hooks = 0;
  generation.fetch_add(1);
  for (size_t i = 0; i < num_hooks.load(); ++i) Call(i, &ForkHooks::child);
}

const bool registered = (RegisterForkHandlers(), true);

}  // namespace

void BeginNoFork() {
  if (self.no_forks++ == 0) Enter();
}

void EndNoFork() {
  if (--self.no_forks == 0 && self.is_counted) Leave();
}

NoFork::NoFork() { BeginNoFork(); }
NoFork::~NoFork() { EndNoFork(); }

// What is covered by another thread's stays so.
MayFork::MayFork() : no_forks_(self.is_counted ? std::exchange(self.no_forks, 0) : 0) {
  if (no_forks_ > 0) Leave();
}

MayFork::~MayFork() {
  if (no_forks_ == 0) return;
  Enter();
  self.no_forks = no_forks_;
}

NoForkOfCaller::NoForkOfCaller() { ++self.no_forks; }
NoForkOfCaller::~NoForkOfCaller() { --self.no_forks; }

void Mutex::lock() {
  BeginNoFork();
  mutex_.lock();
}

void Mutex::unlock() {
  mutex_.unlock();
  EndNoFork();
}

void AtFork(const ForkHooks& added) {
  const size_t place = num_hooks.fetch_add(1);
  if (place < hooks.size()) hooks[place].store(&added);
}

int64_t ForkGeneration() { return generation.load(std::memory_order_relaxed); }

void PrepareFork() {
  if (own_fork.hooks++ > 0) return;
  own_fork.num_hooks = num_hooks.load();
  for (size_t i = own_fork.num_hooks; i-- > 0;) Call(i, &ForkHooks::prepare);
}

void EndForkInParent() {
  if (--own_fork.hooks > 0) return;
  for (size_t i = 0; i < own_fork.num_hooks; ++i) Call(i, &ForkHooks::parent);
}

void RegisterForkHandlers() { pthread_atfork(&Prepare, &Parent, &Child); }

}  // namespace process
