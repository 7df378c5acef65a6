#include "lazy/span.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "process/clock.h"
#include "process/fork.h"

namespace lazy {

std::atomic<bool> spans_are_wanted{false};

namespace {

// Of one line: steps of hours do not fill the memory.
constexpr size_t kMostSpans = 1 << 20;
// Behind the numbers that Linux gives threads.
constexpr int64_t kFirstLineThatIsNoThread = int64_t{1} << 22;

// A thread's own; the lock is contended only when recording ends.
struct Buffer {
  process::Mutex mutex;
  SpanLine line;
  int64_t lost = 0;

  void Add(SpanRecord record) {
    std::lock_guard lock(mutex);
    if (line.spans.size() < kMostSpans) {
      line.spans.push_back(std::move(record));
    } else {
      ++lost;
    }
  }
};

// Never destroyed: threads end after static destructors.
struct Recorder {
  process::Mutex mutex;
  std::vector<std::shared_ptr<Buffer>> threads;
  std::map<std::string, std::shared_ptr<Buffer>, std::less<>> lines;
  std::atomic<int64_t> start_ns{0};  // 0: nothing is recorded

  static std::atomic<Recorder*>& Current() {
    static std::atomic<Recorder*> current{new Recorder};
    return current;
  }
  static Recorder& Get() { return *Current().load(std::memory_order_acquire); }
};

std::atomic<SpanScope*> span_scope{nullptr};

// The epoch's clock less the steady one when the recording began: the epoch's may be set meanwhile.
std::atomic<int64_t> clock_offset{0};

void SetClock() {
  clock_offset = process::NowNanoseconds<std::chrono::system_clock>() - process::NowNanoseconds();
}

// The thread's buffer, with the recorder that knows it.
struct ThreadBuffer {
  Recorder* recorder = nullptr;
  std::shared_ptr<Buffer> buffer;
};
thread_local ThreadBuffer this_thread;

std::string ThreadName() {
  char name[64] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return name;
}

Buffer& BufferOfThread(Recorder& recorder) {
  if (this_thread.recorder != &recorder) {
    auto buffer = std::make_shared<Buffer>();
    buffer->line.id = static_cast<int64_t>(syscall(SYS_gettid));
    buffer->line.name = ThreadName();
    std::lock_guard lock(recorder.mutex);
    recorder.threads.push_back(buffer);
    this_thread = {&recorder, std::move(buffer)};
  }
  return *this_thread.buffer;
}

// Under the recorder's lock, so that the last to come has the last word.
void UpdateWanted() {
  spans_are_wanted = Recorder::Get().start_ns != 0 || span_scope.load() != nullptr;
}

void Take(Buffer& buffer, RecordedSpans& into) {
  std::lock_guard lock(buffer.mutex);
  into.lost += std::exchange(buffer.lost, 0);
  if (buffer.line.spans.empty()) return;
  into.lines.push_back({buffer.line.id, buffer.line.name, std::exchange(buffer.line.spans, {})});
}

}  // namespace

int64_t SpanClock() { return process::NowNanoseconds() + clock_offset; }

void Span::Begin(std::string_view name, std::string_view detail) {
  const SpanScope* scope = span_scope.load(std::memory_order_acquire);
  const bool is_recorded = SpansRecordedSince() != 0;
  const bool is_shown = scope != nullptr && scope->is_wanted();
  if (!is_recorded && !is_shown) return;
  open_ = std::make_unique<Open>();
  open_->record.name = name;
  open_->record.name += detail;
  open_->is_recorded = is_recorded;
  if (is_shown) open_->scope = scope->enter(open_->record.name);
  open_->record.start_ns = SpanClock();
}

void Span::Add(std::string_view name, SpanValue value) {
  if (open_ == nullptr) return;
  auto& [its_name, its_value] = open_->record.arguments.emplace_back();
  its_name = name;
  its_value.swap(value);
}

void Span::Finish() noexcept {
  std::unique_ptr<Open> open = std::move(open_);
  open->record.end_ns = SpanClock();
  if (open->scope != nullptr) span_scope.load(std::memory_order_acquire)->leave(open->scope);
  if (!open->is_recorded) return;
  Recorder& recorder = Recorder::Get();
  const int64_t since = recorder.start_ns.load(std::memory_order_relaxed);
  // One that another recording has begun in between is nobody's.
  if (since == 0 || open->record.start_ns < since) return;
  BufferOfThread(recorder).Add(std::move(open->record));
}

bool StartRecordingSpans() {
  Recorder& recorder = Recorder::Get();
  {
    std::lock_guard lock(recorder.mutex);
    if (recorder.start_ns != 0) return false;
    // The buffers of threads that have ended are nobody else's.
    std::erase_if(recorder.threads, [](const auto& buffer) { return buffer.use_count() == 1; });
    recorder.lines.clear();
    SetClock();
    recorder.start_ns = SpanClock();
    UpdateWanted();
  }
  return true;
}

RecordedSpans StopRecordingSpans() {
  Recorder& recorder = Recorder::Get();
  RecordedSpans recorded;
  {
    std::lock_guard lock(recorder.mutex);
    recorded.start_ns = recorder.start_ns.exchange(0);
    recorded.stop_ns = SpanClock();
    for (const auto& buffer : recorder.threads) Take(*buffer, recorded);
    for (const auto& [name, buffer] : recorder.lines) Take(*buffer, recorded);
    UpdateWanted();
  }
  return recorded;
}

int64_t SpansRecordedSince() { return Recorder::Get().start_ns.load(std::memory_order_relaxed); }

void RecordSpan(std::string_view line, SpanRecord record) {
  Recorder& recorder = Recorder::Get();
  const int64_t since = recorder.start_ns.load(std::memory_order_relaxed);
  if (since == 0) return;
  record.start_ns = std::max(record.start_ns, since);
  std::shared_ptr<Buffer> buffer;
  {
    std::lock_guard lock(recorder.mutex);
    auto found = recorder.lines.find(line);
    if (found == recorder.lines.end()) {
      found = recorder.lines.emplace(line, std::make_shared<Buffer>()).first;
      found->second->line.id =
          kFirstLineThatIsNoThread + static_cast<int64_t>(recorder.lines.size());
      found->second->line.name = line;
    }
    buffer = found->second;
  }
  buffer->Add(std::move(record));
}

void SetSpanScope(SpanScope scope) {
  span_scope = new SpanScope(scope);
  std::lock_guard lock(Recorder::Get().mutex);
  UpdateWanted();
}

void ForgetSpans() {
  // Another thread of the parent may have held its locks.
  Recorder::Current() = new Recorder;
  UpdateWanted();
}

}  // namespace lazy
