// The user's steps on the devices' side of a profile.
#pragma once

#include <vector>

#include "lazy/span.h"
#include "pjrt/wire/xspace.h"

namespace lazy {

// The engine takes each run of a program for a step, as it knows no better. Where the host's spans
// say what the steps are (argument "step_num"), the lines "Steps" are made anew: a step lasts from
// its first program to the next step's first, so that what the device waits for counts.
void MarkSteps(const std::vector<SpanLine>& host, pjrt::XSpace& space);

}  // namespace lazy
