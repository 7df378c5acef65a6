#include "lazy/check_queue.h"

#include <mutex>
#include <utility>

namespace lazy {
namespace {

// Runs whose numbers may wait to be judged. Who only reads values that are there asks for no more
// than that: then the oldest are judged by those that add to them.
constexpr size_t kMostRuns = 16;

}  // namespace

CheckQueue::Run::Run(const pjrt::Buffer& numbers, std::shared_ptr<const ValueChecks> checks,
                     int64_t count)
    : numbers_(checks->size()), checks_(std::move(checks)), count_(count) {
  copied_ = numbers.ToHostAsync(numbers_.data(), numbers_.size() * sizeof(uint64_t));
}

// Not before nobody writes into it.
CheckQueue::Run::~Run() {
  try {
    copied_.Await();
  } catch (const std::exception&) {
  }
}

std::optional<hlo::Error> CheckQueue::Run::Failure() const {
  try {
    copied_.Await();
  } catch (const hlo::Error&) {
    return std::nullopt;
  }
  try {
    RaiseFailed(*checks_, numbers_);
  } catch (const hlo::Error& error) {
    return error;
  }
  return std::nullopt;
}

void CheckQueue::Add(const pjrt::Buffer& numbers, std::shared_ptr<const ValueChecks> checks) {
  auto run = std::make_unique<Run>(numbers, std::move(checks), last_run() + 1);
  std::unique_ptr<Run> oldest;
  {
    std::lock_guard lock(mutex_);
    runs_.push_back(std::move(run));
    last_run_.fetch_add(1, std::memory_order_relaxed);
    is_empty_.store(false, std::memory_order_relaxed);
    if (runs_.size() > kMostRuns) {
      oldest = std::move(runs_.front());
      runs_.pop_front();
    }
  }
  if (oldest) KeepFirst(oldest->Failure());
}

std::unique_ptr<CheckQueue::Run> CheckQueue::TakeFirst(int64_t through) {
  std::lock_guard lock(mutex_);
  if (runs_.empty()) return nullptr;
  if (runs_.front()->count() > through && !runs_.front()->IsOver()) return nullptr;
  std::unique_ptr<Run> run = std::move(runs_.front());
  runs_.pop_front();
  return run;
}

void CheckQueue::KeepFirst(std::optional<hlo::Error> failure) {
  if (!failure) return;
  std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(failure);
  is_empty_.store(false, std::memory_order_relaxed);
}

void CheckQueue::RaiseThrough(int64_t run_count) {
  if (is_empty_.load(std::memory_order_relaxed)) return;
  while (const std::unique_ptr<Run> run = TakeFirst(run_count)) KeepFirst(run->Failure());
  std::optional<hlo::Error> failure;
  {
    std::lock_guard lock(mutex_);
    failure.swap(failure_);
    is_empty_.store(runs_.empty(), std::memory_order_relaxed);
  }
  if (failure) throw hlo::Error(*failure);
}

}  // namespace lazy
