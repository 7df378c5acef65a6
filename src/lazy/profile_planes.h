// What the host's spans make of a profile's planes.
#pragma once

#include <vector>

#include "lazy/span.h"
#include "pjrt/wire/xspace.h"

namespace lazy {

// The plane "/host:CPU" with a line for each thread: the spans, and what the plugin's own profiler
// tells of the host in a plane of that name, which is taken out of `plugins`. Times are in
// nanoseconds since the epoch.
pjrt::XPlane HostPlane(RecordedSpans recorded, pjrt::XSpace& plugins);

// The user's steps on the devices' side. The engine takes each run of a program for a step, as it
// knows no better. Where the host's spans say what the steps are (argument "step_num"), the lines
// "Steps" are made anew: a step lasts from its first program to the next step's first, so that what
// the device waits for counts.
void MarkSteps(const std::vector<SpanLine>& host, pjrt::XSpace& space);

}  // namespace lazy
