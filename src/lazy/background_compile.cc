#include "lazy/background_compile.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lazy/metrics.h"
#include "lazy/warning.h"
#include "process/block_signals.h"

namespace lazy {
namespace {

// Of programs that are lowered or compiled, and not asked for yet.
constexpr size_t kMostJobs = 64;

bool IsEnabled() {
  const char* word = std::getenv("TORCH_XLA_BACKGROUND_COMPILE");
  return word == nullptr || std::string_view(word) != "0";
}

// Of the calling thread, which Linux gives a priority of its own: below the program's.
void YieldToOthers() {
  constexpr int kNice = 10;
  [[maybe_unused]] const int nice_now = nice(kNice);
}

// An exit destroys the variables of the thread that exits before static objects. Other threads end
// without one.
struct CloseAtExit {
  ~CloseAtExit() {
    if (gettid() == getpid()) BackgroundCompiler::Get().Close();
  }
  // Makes the calling thread's.
  static void Watch() { [[maybe_unused]] thread_local const CloseAtExit at_exit; }
};

}  // namespace

struct BackgroundCompiler::Job {
  enum class State : uint8_t { kWaits, kCompiles, kCompiled, kFailed };
  uint64_t hash = 0;
  LoweredProgram program;
  std::vector<std::string> warnings;
  State state = State::kWaits;

  bool is_done() const { return state == State::kCompiled || state == State::kFailed; }
};

BackgroundCompiler& BackgroundCompiler::Get() {
  static auto* compiler = new BackgroundCompiler;
  return *compiler;
}

void BackgroundCompiler::Open() {
  CloseAtExit::Watch();
  is_enabled_ = IsEnabled();
}

void BackgroundCompiler::Start(uint64_t hash, LoweredProgram program) {
  if (!is_enabled_) return;
  CloseAtExit::Watch();
  auto job = std::make_shared<Job>();
  job->hash = hash;
  job->program = std::move(program);
  Jobs kept{job}, waits{std::move(job)};
  if (!thread_.joinable()) {
    const process::BlockSignals blocked;
    thread_ = std::thread([this] { Run(); });
  }
  while (jobs_.size() >= kMostJobs) DropOldest();
  {
    std::lock_guard lock(mutex_);
    if (!is_enabled_) return;  // the process has begun to exit
    jobs_.splice(jobs_.end(), kept);
    waiting_.splice(waiting_.end(), waits);
  }
  changed_.notify_all();
}

BackgroundCompiler::Jobs::iterator BackgroundCompiler::Find(uint64_t hash,
                                                            const std::vector<uint64_t>& signature,
                                                            const Assignment& assignment) {
  return std::ranges::find_if(jobs_, [&](const std::shared_ptr<Job>& job) {
    const CachedProgram& program = *job->program.program;
    return job->hash == hash && program.signature == signature &&
           program.specialization.Serves(assignment);
  });
}

std::shared_ptr<CachedProgram> BackgroundCompiler::Take(uint64_t hash,
                                                        const std::vector<uint64_t>& signature,
                                                        const Assignment& assignment) {
  static auto* taken = Counter("BackgroundCompile");
  auto found = Find(hash, signature, assignment);
  if (found == jobs_.end()) return nullptr;
  const std::shared_ptr<Job> job = *found;
  jobs_.erase(found);
  bool is_mine = false;
  {
    std::lock_guard lock(mutex_);
    is_mine = job->state == Job::State::kWaits;
    if (is_mine) waiting_.remove(job);
  }
  if (is_mine) {
    job->program.Compile();
    return std::move(job->program.program);
  }
  AwaitCompiled(*job);
  if (job->state == Job::State::kFailed) return nullptr;
  Count(taken);
  for (const std::string& text : job->warnings) Warn(text);
  return std::move(job->program.program);
}

void BackgroundCompiler::AwaitCompiled(const Job& job) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return job.is_done(); });
}

// One that is being compiled is only forgotten.
void BackgroundCompiler::DropOldest() {
  const std::shared_ptr<Job> oldest = std::move(jobs_.front());
  jobs_.pop_front();
  std::lock_guard lock(mutex_);
  waiting_.remove(oldest);
}

void BackgroundCompiler::AwaitIdle(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return waiting_.empty() && !is_compiling_; });
}

void BackgroundCompiler::Finish() {
  std::unique_lock lock(mutex_);
  AwaitIdle(lock);
}

void BackgroundCompiler::Stop() {
  {
    std::lock_guard lock(mutex_);
    waiting_.clear();
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  stops_ = false;
  jobs_.clear();
}

void BackgroundCompiler::Close() {
  std::unique_lock lock(mutex_);
  is_enabled_ = false;
  waiting_.clear();  // they are jobs still, which whoever takes one compiles
  AwaitIdle(lock);
}

std::shared_ptr<BackgroundCompiler::Job> BackgroundCompiler::Next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stops_ || !waiting_.empty(); });
  if (stops_) return nullptr;
  std::shared_ptr<Job> job = std::move(waiting_.front());
  waiting_.pop_front();
  job->state = Job::State::kCompiles;
  is_compiling_ = true;
  return job;
}

void BackgroundCompiler::Run() {
  YieldToOthers();
  while (const std::shared_ptr<Job> job = Next()) {
    auto state = Job::State::kCompiled;
    try {
      const KeptWarnings kept(job->warnings);
      job->program.Compile();
    } catch (const std::exception&) {
      state = Job::State::kFailed;
    }
    std::lock_guard lock(mutex_);
    job->state = state;
    is_compiling_ = false;
    changed_.notify_all();
  }
}

}  // namespace lazy
