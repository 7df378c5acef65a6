#include "cpu/collective/heartbeat.h"

#include <cstdio>
#include <system_error>
#include <utility>

#include "hlo/error.h"
#include "process/block_signals.h"

namespace cpu {

std::thread StartHeartbeatThread(std::function<void()> work) {
  const process::BlockSignals blocked;
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    throw hlo::Error(hlo::ErrorCode::kResourceExhausted,
                     std::string("no thread for signs of life between ranks: ") + error.what());
  }
}

void WarnOfSilence(int64_t rank, std::chrono::milliseconds timeout) {
  std::fprintf(stderr,
               "torch_xla: warning: rank %lld has given no sign of life for %g s "
               "(TORCH_XLA_HEARTBEAT_TIMEOUT): it is stopped, or its host or the network has "
               "gone.\n",
               static_cast<long long>(rank), static_cast<double>(timeout.count()) / 1000);
}

}  // namespace cpu
