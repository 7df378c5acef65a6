// The host's side of a profile.
#pragma once

#include "lazy/span.h"
#include "pjrt/wire/xspace.h"

namespace lazy {

// The plane "/host:CPU" with a line for each thread: the spans, and what the plugin's own profiler
// tells of the host in a plane of that name, which is taken out of `plugins`. Times are in
// nanoseconds since the epoch.
pjrt::XPlane HostPlane(RecordedSpans recorded, pjrt::XSpace& plugins);

}  // namespace lazy
