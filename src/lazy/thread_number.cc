#include "lazy/thread_number.h"

#include <atomic>

namespace lazy {
namespace {

std::atomic<int64_t> last{0};
// Each recorded node reads it: not by the call that a library's thread-local variables take else.
[[gnu::tls_model("initial-exec")]] constinit thread_local int64_t own = 0;  // none yet

}  // namespace

int64_t ThreadNumber() {
  if (own == 0) [[unlikely]]
    own = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return own;
}

}  // namespace lazy
