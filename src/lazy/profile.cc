#include "lazy/profile.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "hlo/error.h"
#include "lazy/device.h"
#include "lazy/profile_planes.h"
#include "lazy/span.h"
#include "pjrt/client/profiler.h"
#include "pjrt/wire/xspace.h"

namespace lazy {
namespace {

constexpr char kTaskPlane[] = "Task Environment";

struct Profile {
  std::mutex mutex;
  const pjrt::Plugin* plugin = nullptr;  // that the runtime drives
  bool is_running = false;
  std::unique_ptr<pjrt::Profiler> profiler;  // of the plugin, while it is running
  std::string warning;

  static std::atomic<Profile*>& Current() {
    static std::atomic<Profile*> current{new Profile};
    return current;
  }
  static Profile& Get() { return *Current(); }

  // Without the plugin's part a profile is still worth having.
  void StartProfiler() {
    if (plugin == nullptr || !pjrt::Profiler::IsOfferedBy(*plugin)) return;
    try {
      profiler = std::make_unique<pjrt::Profiler>(*plugin);
      profiler->Start();
    } catch (const hlo::Error& error) {
      profiler.reset();
      warning = error.what();
    }
  }

  pjrt::XSpace Collect() {
    pjrt::XSpace space;
    if (profiler != nullptr) {
      try {
        space = pjrt::ParseXSpace(profiler->Collect());
      } catch (const hlo::Error& error) {
        warning = error.what();
      }
      profiler.reset();
    }
    if (!warning.empty()) space.warnings.push_back(std::exchange(warning, {}));
    return space;
  }

  void StopProfiler() {
    if (profiler == nullptr) return;
    try {
      profiler->Stop();
    } catch (const hlo::Error& error) {
      profiler.reset();
      warning = error.what();
    }
  }
};

pjrt::XPlane TaskPlane(int64_t start_ns, int64_t stop_ns) {
  pjrt::XPlaneBuilder builder(kTaskPlane);
  const auto start = static_cast<uint64_t>(start_ns), stop = static_cast<uint64_t>(stop_ns);
  builder.plane().stats = {builder.Stat("profile_start_time", start),
                           builder.Stat("profile_stop_time", stop)};
  return std::move(builder.plane());
}

// Plugins say when in nanoseconds since the epoch, or count from their start already.
void CountFrom(int64_t start_ns, pjrt::XSpace& space) {
  for (pjrt::XPlane& plane : space.planes) {
    for (pjrt::XLine& line : plane.lines) {
      const bool is_since_epoch = line.timestamp_ns > start_ns / 2;
      if (is_since_epoch) line.timestamp_ns = std::max<int64_t>(line.timestamp_ns - start_ns, 0);
    }
  }
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

void StartProfile() {
  Profile& profile = Profile::Get();
  std::lock_guard lock(profile.mutex);
  if (profile.is_running) {
    throw hlo::Error(
        hlo::ErrorCode::kFailedPrecondition,
        "Only one profile may be run at a time. One of this process is being collected");
  }
  profile.is_running = true;
  StartRecordingSpans();
  profile.StartProfiler();
}

bool IsProfiling() {
  Profile& profile = Profile::Get();
  std::lock_guard lock(profile.mutex);
  return profile.is_running;
}

std::string StopProfile() {
  Profile& profile = Profile::Get();
  std::lock_guard lock(profile.mutex);
  if (!profile.is_running) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     "No profile started: nothing is being collected");
  }
  profile.is_running = false;
  profile.StopProfiler();
  RecordedSpans recorded = StopRecordingSpans();
  pjrt::XSpace space = profile.Collect();
  if (recorded.lost > 0) {
    space.warnings.push_back(std::to_string(recorded.lost) +
                             " spans of the host were lost; collect for a shorter time");
  }
  space.hostnames = {HostName()};
  MarkSteps(recorded.lines, space);
  const int64_t start = recorded.start_ns, stop = recorded.stop_ns;
  space.planes.insert(space.planes.begin(), HostPlane(std::move(recorded), space));
  CountFrom(start, space);
  space.planes.push_back(TaskPlane(start, stop));
  return pjrt::Serialize(space);
}

void JoinProfile(const pjrt::Plugin& plugin) {
  Profile& profile = Profile::Get();
  std::lock_guard lock(profile.mutex);
  profile.plugin = &plugin;
  if (profile.is_running && profile.profiler == nullptr) profile.StartProfiler();
}

void ForgetProfile() {
  Profile& parents = Profile::Get();
  auto* own = new Profile;
  own->plugin = parents.plugin;
  Profile::Current() = own;
  ForgetSpans();
  // Our engine works on in a forked process, and would go on recording. Other plugins are not
  // called again.
  if (parents.profiler != nullptr && Runtime::DeviceType() == "CPU") parents.profiler.reset();
}

}  // namespace lazy
