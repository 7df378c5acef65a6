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

// Adds to the time of a step: as it passed, and as all threads of the process computed.
void AddStepTime(const Step& step, double milliseconds, double cpu_milliseconds);
// What all threads of the process have computed so far.
double CpuMilliseconds();

}  // namespace cpu
