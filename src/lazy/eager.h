// When recorded work runs. In eager mode each operation runs as it is called: a small one on the
// caller's thread by the framework's own kernel, where the device's memory is the host's, any other
// by a program of its own, which is kept and starts in the order of the calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lazy/node.h"

namespace lazy {

class Device;

enum class Execution : uint8_t {
  kAtSync,           // as one graph, with the next sync or read; the default
  kAsCalled,         // operation by operation, as the program calls them
  kAsCalledAwaited,  // and each has ended when its call returns: what fails is raised there
};
// "lazy", "eager" or "eager_wait"; throws hlo::Error for any other word.
Execution ExecutionOf(std::string_view word);
std::string WordFor(Execution execution);
// Of the process, since backward passes have threads of their own. XLA_USE_EAGER_DEBUG_MODE=1
// makes it kAsCalledAwaited at first. Setting it runs nothing that is pending.
void SetExecution(Execution execution);
Execution CurrentExecution();

// While one lives, its thread records only: for operations that belong together.
class RecordOnly {
 public:
  RecordOnly();
  ~RecordOnly();
  RecordOnly(const RecordOnly&) = delete;
};

// Whether what this thread records is to run at once: in eager mode, but for captures (capture.h).
bool RunsAsCalled();

// The data of a value that is recorded work, of whose node all results are computed. Throws
// hlo::Error.
Value RunNow(Device* device, Value value);

}  // namespace lazy
