#include "lazy/fork.h"

#include <pthread.h>

#include <new>

#include "hlo/error.h"
#include "lazy/device.h"
#include "lazy/profile.h"
#include "lazy/sync.h"

namespace lazy {
namespace {

// A mutex that the forking thread holds cannot be unlocked by the child's thread, which is another
// one: it is made anew.
template <typename Mutex>
void Renew(Mutex& mutex) {
  new (&mutex) Mutex;
}

void Prepare() {
  SyncMutex().lock();
  try {
    WaitDeviceOps();
  } catch (const hlo::Error&) {
    // It belongs to whoever reads the result.
  }
  if (!Runtime::IsStarted()) return;
  for (const auto& device : Runtime::Get().devices()) device->pending_mutex.lock();
}

void ReleaseInParent() {
  if (Runtime::IsStarted()) {
    for (const auto& device : Runtime::Get().devices()) device->pending_mutex.unlock();
  }
  SyncMutex().unlock();
}

void RenewInChild() {
  if (Runtime::IsStarted()) {
    for (const auto& device : Runtime::Get().devices()) Renew(device->pending_mutex);
  }
  Renew(SyncMutex());
  Runtime::MarkForked();
  ForgetProfile();
}

}  // namespace

void RegisterForkHandlers() {
  static const int registered = pthread_atfork(&Prepare, &ReleaseInParent, &RenewInChild);
  (void)registered;
}

}  // namespace lazy
