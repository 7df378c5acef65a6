#include "lazy/check_queue.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace lazy {
namespace {

// Runs whose numbers may wait to be judged. Who only reads values that are there asks for no more
// than that: then the oldest are judged by those that add to them. So many runs later a thread is
// told no more of what another one was told.
constexpr size_t kMostRuns = 16;
// Failures that may wait to be told, of as many threads.
constexpr size_t kMostFailures = 64;

}  // namespace

CheckQueue::Run::Run(const pjrt::Buffer& numbers, std::shared_ptr<const ValueChecks> checks,
                     std::vector<std::vector<uint32_t>> threads, int64_t count)
    : numbers_(checks->size()),
      checks_(std::move(checks)),
      threads_(std::move(threads)),
      count_(count) {
  copied_ = numbers.ToHostAsync(numbers_.data(), numbers_.size() * sizeof(uint64_t));
}

// Not before nobody writes into it.
CheckQueue::Run::~Run() {
  try {
    copied_.Await();
  } catch (const std::exception&) {
  }
}

std::vector<CheckQueue::Failure> CheckQueue::Run::Failures() const {
  try {
    copied_.Await();
  } catch (const hlo::Error&) {
    return {};
  }
  std::vector<Failure> failures;
  for (size_t i = 0; i < numbers_.size(); ++i) {
    auto error = FailureOf((*checks_)[i], numbers_[i]);
    if (!error) continue;
    for (const uint32_t thread : threads_[i]) {
      const auto known = std::ranges::find(failures, thread, &Failure::thread);
      if (known == failures.end()) failures.push_back({thread, starter_, count_, *error});
    }
  }
  return failures;
}

void CheckQueue::Add(const pjrt::Buffer& numbers, std::shared_ptr<const ValueChecks> checks,
                     std::vector<std::vector<uint32_t>> threads) {
  auto run =
      std::make_shared<const Run>(numbers, std::move(checks), std::move(threads), last_run() + 1);
  std::shared_ptr<const Run> oldest;
  {
    std::lock_guard lock(mutex_);
    runs_.push_back(std::move(run));
    const int64_t old = last_run_.fetch_add(1, std::memory_order_relaxed) - int64_t{kMostRuns};
    std::erase_if(failures_, [&](const Failure& f) { return f.is_told && f.run < old; });
    is_empty_.store(false, std::memory_order_relaxed);
    if (runs_.size() > kMostRuns) oldest = runs_.front();
  }
  if (oldest) Judge(oldest);
}

std::shared_ptr<const CheckQueue::Run> CheckQueue::First(int64_t through) {
  std::lock_guard lock(mutex_);
  if (runs_.empty()) return nullptr;
  const bool is_wanted = runs_.front()->count() <= through || runs_.front()->IsOver();
  return is_wanted ? runs_.front() : nullptr;
}

void CheckQueue::Judge(const std::shared_ptr<const Run>& run) {
  std::vector<Failure> failures = run->Failures();
  std::lock_guard lock(mutex_);
  if (runs_.empty() || runs_.front() != run) return;  // another thread has judged it
  runs_.pop_front();
  for (Failure& failure : failures) Note(std::move(failure));
}

void CheckQueue::Note(Failure failure) {
  const auto known = std::ranges::find(failures_, failure.thread, &Failure::thread);
  if (known != failures_.end()) {
    // Its thread has not come for what another one was told: this is the news.
    if (!known->is_told) return;
    failures_.erase(known);
  }
  if (failures_.size() >= kMostFailures) {
    // Their threads may have ended.
    const auto told = std::ranges::find(failures_, true, &Failure::is_told);
    if (told == failures_.end()) return;
    failures_.erase(told);
  }
  failures_.push_back(std::move(failure));
}

std::optional<hlo::Error> CheckQueue::TakeFailure(int64_t through) {
  std::lock_guard lock(mutex_);
  std::optional<hlo::Error> error;
  const uint32_t thread = Node::ThisThread();
  const auto own = std::ranges::find(failures_, thread, &Failure::thread);
  if (own != failures_.end()) {
    error = std::move(own->error);
    failures_.erase(own);
  } else {
    const auto others = std::ranges::find_if(failures_, [&](const Failure& f) {
      return (f.run <= through || f.starter == thread) && !f.is_told;
    });
    if (others != failures_.end()) {
      others->is_told = true;
      error = others->error;
    }
  }
  is_empty_.store(runs_.empty() && failures_.empty(), std::memory_order_relaxed);
  return error;
}

void CheckQueue::RaiseThrough(int64_t run_count) {
  if (is_empty_.load(std::memory_order_relaxed)) return;
  while (const std::shared_ptr<const Run> run = First(run_count)) Judge(run);
  if (const auto error = TakeFailure(run_count)) throw hlo::Error(*error);
}

}  // namespace lazy
