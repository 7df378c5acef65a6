#include "lazy/cut_reason.h"

#include <atomic>
#include <memory>
#include <mutex>

#include "process/clock.h"
#include "process/fork.h"

namespace lazy {
namespace {

thread_local const CutReason* current_reason = nullptr;

struct CutObserver {
  process::Mutex mutex;
  std::shared_ptr<const WaitObserver> function;
  std::atomic<bool> is_set{false};
  static CutObserver& Get() {
    static CutObserver* observer = new CutObserver;
    return *observer;
  }
};

}  // namespace

std::string CutReason::ToString() const {
  switch (kind) {
    case Kind::kUnknown:
    case Kind::kUpload:  // runs nothing
      break;
    case Kind::kCaller:
      return std::string(text);
    case Kind::kRead:
      return "read by " + std::string(text);
    case Kind::kFallback:
      return "fallback of " + std::string(text);
  }
  return "unknown";
}

void CutScope::Enter() {
  if (current_reason != nullptr) return;
  is_outermost_ = true;
  current_reason = &reason_;
  if (reason_.kind == CutReason::Kind::kRead) span_.emplace("xla::read ", reason_.text);
  if (reason_.kind == CutReason::Kind::kFallback) span_.emplace("xla::fallback ", reason_.text);
  if (CutObserver::Get().is_set.load(std::memory_order_relaxed))
    start_ns_ = process::NowNanoseconds();
}

void CutScope::Leave() {
  if (!is_outermost_) return;
  current_reason = nullptr;
  span_.reset();
  if (start_ns_ == 0 || reason_.kind == CutReason::Kind::kCaller) return;
  std::shared_ptr<const WaitObserver> function;
  {
    std::lock_guard lock(CutObserver::Get().mutex);
    function = CutObserver::Get().function;
  }
  if (function)
    (*function)(reason_, static_cast<double>(process::NowNanoseconds() - start_ns_) * 1e-9);
}

CutReason CurrentCutReason() { return current_reason != nullptr ? *current_reason : CutReason(); }

void SetWaitObserver(WaitObserver observer) {
  CutObserver& state = CutObserver::Get();
  std::shared_ptr<const WaitObserver> function;
  if (observer) function = std::make_shared<const WaitObserver>(std::move(observer));
  std::lock_guard lock(state.mutex);
  state.is_set = function != nullptr;
  std::swap(state.function, function);  // the old one is destroyed after unlocking
}

}  // namespace lazy
