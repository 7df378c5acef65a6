// The Profiler extension, which every plugin offers alike: its functions have structs and errors of
// their own. What is collected is the plugin's affair.
#pragma once

#include <memory>
#include <string>

#include "pjrt/c_api.h"

namespace pjrt::boundary {

// Collects what a plugin's devices do between Start and Stop, which take turns. Used by one thread
// at a time; its destructor stops it. Functions throw hlo::Error.
class DeviceProfiler {
 public:
  virtual ~DeviceProfiler() = default;
  virtual void Start() = 0;
  virtual void Stop() = 0;
  // Of the last collection: a serialized XSpace (pjrt/wire/xspace.h); empty before the first.
  virtual std::string Collect() = 0;
};

// Each plugin has its own.
std::unique_ptr<DeviceProfiler> NewDeviceProfiler();

// Followed by `next` in the chain.
PJRT_Profiler_Extension ProfilerExtension(PJRT_Extension_Base* next);

}  // namespace pjrt::boundary
