// What the host does, in time: spans with a name, a start and an end, on the thread that they
// happen on. Nobody listens most of the time; then a span costs one relaxed load.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lazy {

using SpanValue = std::variant<int64_t, double, std::string>;

struct SpanRecord {
  std::string name;
  int64_t start_ns = 0, end_ns = 0;  // as SpanClock gives them
  std::vector<std::pair<std::string, SpanValue>> arguments;
};

// Nanoseconds since the epoch, of a clock that never goes back.
int64_t SpanClock();

// False while nobody listens.
extern std::atomic<bool> spans_are_wanted;

// Lasts from its construction to End() or its destruction, both on one thread. Spans of one thread
// nest.
class Span {
 public:
  // The name is `name` followed by `detail`.
  explicit Span(std::string_view name, std::string_view detail = {}) {
    if (spans_are_wanted.load(std::memory_order_relaxed)) Begin(name, detail);
  }
  ~Span() { End(); }
  Span(const Span&) = delete;

  // True if somebody listens: arguments that cost something are worth making.
  explicit operator bool() const { return open_ != nullptr; }
  void Add(std::string_view name, SpanValue value);
  void End() {
    if (open_ != nullptr) Finish();
  }

 private:
  struct Open {
    SpanRecord record;
    bool is_recorded = false;
    void* scope = nullptr;
  };
  void Begin(std::string_view name, std::string_view detail);
  void Finish() noexcept;

  std::unique_ptr<Open> open_;
};

// The spans of one thread, or of a line that is no thread, in the order of their ends.
struct SpanLine {
  int64_t id = 0;  // of the thread
  std::string name;
  std::vector<SpanRecord> spans;
};

// Records spans from now on; false if they are being recorded already.
bool StartRecordingSpans();
struct RecordedSpans {
  int64_t start_ns = 0, stop_ns = 0;
  std::vector<SpanLine> lines;
  int64_t lost = 0;  // more than there was room for
};
// What has begun and ended since.
RecordedSpans StopRecordingSpans();
// When recording started; 0 if spans are not recorded.
int64_t SpansRecordedSince();
// Of something that is no thread's doing, on the line of that name.
void RecordSpan(std::string_view line, SpanRecord record);

// Another listener, which sees each span from its start to its end. Its functions are called on the
// span's thread and throw nothing. Set once.
struct SpanScope {
  bool (*is_wanted)() = nullptr;  // does anybody listen? Asked for each span
  void* (*enter)(const std::string& name) = nullptr;
  void (*leave)(void* entered) = nullptr;  // what `enter` has returned, unless null
};
void SetSpanScope(SpanScope scope);

// In the child of a fork: what was recorded belongs to the parent.
void ForgetSpans();

}  // namespace lazy
