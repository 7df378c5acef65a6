#include "cpu/collective/heartbeat.h"

#include <signal.h>

#include <cstdio>
#include <optional>
#include <system_error>
#include <utility>

#include "hlo/error.h"

namespace cpu {

std::thread StartHeartbeatThread(std::function<void()> work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  std::optional<std::system_error> failure;
  try {
    thread = std::thread(std::move(work));
  } catch (const std::system_error& error) {
    failure = error;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!failure) return thread;
  throw hlo::Error(hlo::ErrorCode::kResourceExhausted,
                   std::string("no thread for signs of life between ranks: ") + failure->what());
}

void WarnOfSilence(int64_t rank, std::chrono::milliseconds timeout) {
  std::fprintf(stderr,
               "torch_xla: warning: rank %lld has given no sign of life for %g s "
               "(TORCH_XLA_HEARTBEAT_TIMEOUT): it is stopped, or its host or the network has "
               "gone.\n",
               static_cast<long long>(rank), static_cast<double>(timeout.count()) / 1000);
}

}  // namespace cpu
