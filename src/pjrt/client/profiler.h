// A plugin's own profiler: what its devices do, through the Profiler extension.
#pragma once

#include <string>

#include "pjrt/c_api.h"
#include "pjrt/client/plugin.h"

namespace pjrt {

// One collection: Start, Stop, Collect, in this order. Not thread-safe.
class Profiler {
 public:
  static bool IsOfferedBy(const Plugin& plugin);
  // Throws hlo::Error: kUnimplemented if the plugin has no profiler, and what it answers.
  explicit Profiler(const Plugin& plugin);
  ~Profiler();
  Profiler(const Profiler&) = delete;

  void Start();
  void Stop();
  // A serialized XSpace; see pjrt/wire/xspace.h.
  std::string Collect();

 private:
  void Check(PLUGIN_Profiler_Error* error) const;

  const PLUGIN_Profiler_Api* api_;
  PLUGIN_Profiler* profiler_ = nullptr;
};

}  // namespace pjrt
