#include "process/fork.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

namespace process {
namespace {

// How many threads have a NoFork, and whether a fork is under way.
std::atomic<int32_t> inside{0}, closed{0};
std::atomic<int64_t> generation{0};

struct ThisThread {
  int no_forks = 0;
  bool is_counted = false;  // in `inside`
  // Of the fork that it prepares: handlers are registered several times, and act once.
  int hooks = 0, handlers = 0;
  size_t num_hooks = 0;
  int no_forks_before = 0;
  bool was_counted = false;
};
constinit thread_local ThisThread self;

// As readers enter under a lock that lets the writer pass first.
void Enter() {
  while (true) {
    inside.fetch_add(1);
    if (closed.load() == 0) break;
    inside.fetch_sub(1);
    inside.notify_all();
    closed.wait(1);
  }
  self.is_counted = true;
}

void Leave() {
  self.is_counted = false;
  inside.fetch_sub(1);
  if (closed.load() != 0) inside.notify_all();
}

void Close() {
  self.was_counted = self.is_counted;
  self.no_forks_before = self.no_forks;
  if (self.is_counted) Leave();
  while (closed.exchange(1) != 0) closed.wait(1);
  for (int32_t others = inside.load(); others != 0; others = inside.load()) inside.wait(others);
  self.no_forks = 1;  // what other handlers call on this thread finds it open
}

void Open() {
  self.no_forks = self.no_forks_before;
  self.is_counted = self.was_counted;
  if (self.is_counted) inside.fetch_add(1);
  closed.store(0);
  closed.notify_all();
}

std::array<std::atomic<const ForkHooks*>, 16> hooks;
std::atomic<size_t> num_hooks{0};

void Call(size_t place, void (*ForkHooks::*hook)()) {
  const ForkHooks* one = hooks[place].load();
  if (one != nullptr && one->*hook != nullptr) (one->*hook)();
}

void Prepare() {
  if (self.handlers++ > 0) return;
  PrepareFork();
  Close();
}

void Parent() {
  if (--self.handlers > 0) return;
  Open();
  EndForkInParent();
}

void Child() {
  if (--self.handlers > 0) return;
  inside.store(0);  // others that were at the door are not here
  Open();
  self.hooks = 0;
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
  if (self.hooks++ > 0) return;
  self.num_hooks = num_hooks.load();
  for (size_t i = self.num_hooks; i-- > 0;) Call(i, &ForkHooks::prepare);
}

void EndForkInParent() {
  if (--self.hooks > 0) return;
  for (size_t i = 0; i < self.num_hooks; ++i) Call(i, &ForkHooks::parent);
}

void RegisterForkHandlers() { pthread_atfork(&Prepare, &Parent, &Child); }

}  // namespace process
