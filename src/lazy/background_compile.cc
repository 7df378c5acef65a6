#include "lazy/background_compile.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <utility>

#include "lazy/metrics.h"

namespace lazy {
namespace {

// Of programs that are lowered or compiled, and not asked for yet.
constexpr size_t kMostJobs = 64;

bool IsEnabled() {
  const char* word = std::getenv("TORCH_XLA_BACKGROUND_COMPILE");
  return word == nullptr || std::string_view(word) != "0";
}

// Of the calling thread, which Linux gives a priority of its own.
void YieldToOthers() {
  constexpr int kNice = 10;
  setpriority(PRIO_PROCESS, 0, kNice);
}

}  // namespace

struct BackgroundCompiler::Job {
  enum class State : uint8_t { kWaits, kCompiles, kCompiled, kFailed };
  uint64_t hash = 0;
  LoweredProgram program;
  State state = State::kWaits;

  bool is_done() const { return state == State::kCompiled || state == State::kFailed; }
};

BackgroundCompiler& BackgroundCompiler::Get() {
  static auto* compiler = new BackgroundCompiler;
  return *compiler;
}

void BackgroundCompiler::Open() { is_enabled_ = IsEnabled(); }

void BackgroundCompiler::Start(uint64_t hash, LoweredProgram program) {
  if (!is_enabled_) return;
  while (jobs_.size() >= kMostJobs) DropOldest();
  auto job = std::make_shared<Job>();
  job->hash = hash;
  job->program = std::move(program);
  jobs_.push_back(job);
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(job));
  }
  changed_.notify_all();
  if (thread_.joinable()) return;
  thread_ = std::thread([this] { Run(); });
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

void BackgroundCompiler::Finish() {
  for (const std::shared_ptr<Job>& job : jobs_) AwaitCompiled(*job);
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
  Stop();
  is_enabled_ = false;
}

std::shared_ptr<BackgroundCompiler::Job> BackgroundCompiler::Next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stops_ || !waiting_.empty(); });
  if (stops_) return nullptr;
  std::shared_ptr<Job> job = std::move(waiting_.front());
  waiting_.pop_front();
  job->state = Job::State::kCompiles;
  return job;
}

void BackgroundCompiler::Run() {
  YieldToOthers();
  while (const std::shared_ptr<Job> job = Next()) {
    auto state = Job::State::kCompiled;
    try {
      job->program.Compile();
    } catch (const std::exception&) {
      state = Job::State::kFailed;
    }
    std::lock_guard lock(mutex_);
    job->state = state;
    changed_.notify_all();
  }
}

}  // namespace lazy
