// A point in a plugin's asynchronous work.
#pragma once

#include <functional>
#include <optional>

#include "pjrt/client/plugin.h"

namespace pjrt {

// Owns a PJRT_Event. A default-constructed event is ready and without error.
class Event {
 public:
  Event() = default;
  Event(const Plugin& plugin, PJRT_Event* event) : plugin_(&plugin), event_(event) {}
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  bool IsReady() const;
  // Blocks until ready; throws the work's hlo::Error.
  void Await() const;
  // The error of a ready event, if any.
  std::optional<hlo::Error> error() const;
  // Calls back once, with null or the error: at once if ready, else later on a thread of the
  // plugin. The event may be destroyed before. Exceptions must not leave the callback.
  void OnReady(std::function<void(const hlo::Error*)> callback) const;

 private:
  const Plugin* plugin_ = nullptr;
  PJRT_Event* event_ = nullptr;
};

}  // namespace pjrt
