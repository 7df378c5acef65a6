// Where a program's time goes, for people: set TORCH_XLA_PROFILE=1 and the engine prints at the
// process's end, for each step of each program (a kernel, a library call), how often it ran,
// the CPU time that it took on all threads, and the time that passed, the longest first; and how
// long the compiler's passes took.
#pragma once

#include <string_view>

namespace cpu {

class Step;

// Read once from the environment.
bool ProfilesSteps();

// Adds to the time of a pass of the compiler (pipeline.h).
void AddPassTime(std::string_view name, double milliseconds);

// Adds its own lifetime to the step's time.
class StepTimer {
 public:
  explicit StepTimer(const Step& step);
  ~StepTimer();
  StepTimer(const StepTimer&) = delete;

 private:
  const Step& step_;
  double start_, cpu_start_;  // milliseconds
};

}  // namespace cpu
