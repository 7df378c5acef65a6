// A profile of this process: the host's spans and what the devices' profilers tell, on one time
// axis.
#pragma once

#include <string>

namespace pjrt {
class Plugin;
}

namespace lazy {

// Collects from now on. There is one profile at a time: throws hlo::Error(kFailedPrecondition) if
// one is being collected.
void StartProfile();
bool IsProfiling();
// Ends it. A serialized XSpace (pjrt/wire/xspace.h): the plane "/host:CPU" with a line for each
// thread, the planes of the plugin, and "Task Environment", whose stats say when the profile began
// and ended. Times count from the beginning. Throws hlo::Error(kFailedPrecondition) if nothing is
// being collected.
std::string StopProfile();

// The runtime drives this plugin from now on.
void JoinProfile(const pjrt::Plugin& plugin);
// In the child of a fork: the profile is the parent's.
void ForgetProfile();

}  // namespace lazy
