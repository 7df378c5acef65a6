#include "lazy/check_queue.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace lazy {
namespace {

// Runs whose numbers may wait to be judged. Who only reads values that are there asks for no more
// than that: then the oldest are judged by those that add to them.
constexpr size_t kMostRuns = 16;
// Failures that may wait to be told, of as many threads.
constexpr size_t kMostFailures = 64;

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
  if (oldest) Judge(*oldest);
}

std::unique_ptr<CheckQueue::Run> CheckQueue::TakeFirst(int64_t through) {
  std::lock_guard lock(mutex_);
  if (runs_.empty()) return nullptr;
  if (runs_.front()->count() > through && !runs_.front()->IsOver()) return nullptr;
  std::unique_ptr<Run> run = std::move(runs_.front());
  runs_.pop_front();
  return run;
}

void CheckQueue::Judge(const Run& run) {
  std::optional<hlo::Error> failure = run.Failure();
  if (!failure) return;
  std::lock_guard lock(mutex_);
  is_empty_.store(false, std::memory_order_relaxed);
  const bool is_known =
      std::ranges::find(failures_, run.thread(), &Failure::thread) != failures_.end();
  if (!is_known && failures_.size() < kMostFailures) {
    failures_.push_back({run.thread(), run.count(), *std::move(failure)});
  }
}

std::optional<hlo::Error> CheckQueue::TakeFailure(int64_t through) {
  std::lock_guard lock(mutex_);
  std::optional<hlo::Error> error;
  auto chosen = std::ranges::find(failures_, std::this_thread::get_id(), &Failure::thread);
  if (chosen == failures_.end()) {
    chosen = std::ranges::find_if(failures_, [&](const Failure& f) { return f.run <= through; });
  }
  if (chosen != failures_.end()) {
    error = std::move(chosen->error);
    failures_.erase(chosen);
  }
  is_empty_.store(runs_.empty() && failures_.empty(), std::memory_order_relaxed);
  return error;
}

void CheckQueue::RaiseThrough(int64_t run_count) {
  if (is_empty_.load(std::memory_order_relaxed)) return;
  while (const std::unique_ptr<Run> run = TakeFirst(run_count)) Judge(*run);
  if (const auto error = TakeFailure(run_count)) throw hlo::Error(*error);
}

}  // namespace lazy
