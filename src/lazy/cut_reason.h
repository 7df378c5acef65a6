// Why recorded work runs now, said by those who ask for it, so that reports need not guess.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lazy/span.h"

namespace lazy {

struct CutReason {
  enum class Kind : uint8_t {
    kUnknown,
    kCaller,    // whoever called sync says so: `text`
    kRead,      // `text` is the operator that needs a value
    kFallback,  // `text` is the operator that runs on the CPU
    kUpload,    // nothing runs: a tensor moves to the device
  };
  Kind kind = Kind::kUnknown;
  std::string_view text;

  // For people: "read by aten::_local_scalar_dense".
  std::string ToString() const;
};

// While it lives, what this thread runs and reads is for its reason. The outermost counts: an
// operator without a kernel reads its inputs, because of which they are computed.
class CutScope {
 public:
  // `text` outlives the scope.
  CutScope(CutReason::Kind kind, std::string_view text) : reason_{kind, text} { Enter(); }
  ~CutScope() { Leave(); }
  CutScope(const CutScope&) = delete;

 private:
  void Enter();
  void Leave();

  CutReason reason_;
  bool is_outermost_ = false;
  int64_t start_ns_ = 0;
  std::optional<Span> span_;  // "xla::read aten::equal", "xla::fallback aten::histc"
};

// The thread's reason; of kind kUnknown when nobody gave one.
CutReason CurrentCutReason();

// Called at the end of each outermost scope of kind kRead, kFallback or kUpload, with the seconds
// that it took: the program waited for so long. May throw nothing. Empty: nobody.
using WaitObserver = std::function<void(const CutReason&, double seconds)>;
void SetWaitObserver(WaitObserver observer);

}  // namespace lazy
