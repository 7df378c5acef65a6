#include "lazy/fork.h"

#include <atomic>

#include "lazy/background_compile.h"
#include "lazy/device.h"
#include "lazy/profile.h"
#include "lazy/run_queue.h"
#include "lazy/sync_mutex.h"
#include "process/fork.h"

namespace lazy {
namespace {

std::atomic<void (*)(void (*)())> fork_waiter{[](void (*wait)()) { wait(); }};

void TakeLocks() {
  SyncMutex().lock();
  BackgroundCompiler::Get().Stop();
  FinishWork();
  RuntimeMutex().lock();
}

void GiveLocksBack() {
  RuntimeMutex().unlock();
  SyncMutex().unlock();
}

void RenewInChild() {
  RuntimeMutex().unlock();
  SyncMutex().Renew();
  Runtime::MarkForked();
  ForgetProfile();
}

constexpr process::ForkHooks kHooks{
    .prepare = [] { fork_waiter.load()(&TakeLocks); },
    .parent = &GiveLocksBack,
    .child = &RenewInChild,
};
const bool added = (process::AtFork(kHooks), true);

}  // namespace

std::mutex& RuntimeMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

void SetForkWaiter(void (*waiter)(void (*wait)())) { fork_waiter = waiter; }

}  // namespace lazy
