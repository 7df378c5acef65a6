// Waiting for work that uses what the caller lent it, when the caller can go on no more.
#pragma once

#include <functional>
#include <utility>

#include "pjrt/client/event.h"

namespace pjrt {

// Blocks until the event is ready, whatever becomes of the work.
inline void Wait(const Event& event) noexcept {
  try {
    event.Await();
  } catch (...) {  // thrown when the work is done
  }
}

// Event::OnReady for work that uses the callback's memory: if the plugin has none for the callback,
// throws only after the work is done.
inline void OnReadyOrWait(const Event& event, std::function<void(const hlo::Error*)> callback) {
  try {
    event.OnReady(std::move(callback));
  } catch (...) {
    Wait(event);
    throw;
  }
}

}  // namespace pjrt
