#include "pjrt/client/event.h"

#include <memory>
#include <new>
#include <utility>

#include "pjrt/client/call.h"

namespace pjrt {

Event::~Event() {
  if (event_ == nullptr) return;
  Arguments<PJRT_Event_Destroy_Args> args;
  args->event = event_;
  (void)plugin_->ToError(plugin_->api().PJRT_Event_Destroy(args.get()));
}

Event::Event(Event&& other) noexcept
    : plugin_(other.plugin_), event_(std::exchange(other.event_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(plugin_, other.plugin_);
  std::swap(event_, other.event_);
  return *this;
}

bool Event::IsReady() const {
  if (event_ == nullptr) return true;
  Arguments<PJRT_Event_IsReady_Args> args;
  args->event = event_;
  PJRT_INVOKE(*plugin_, Event_IsReady, args);
  return args->is_ready;
}

void Event::Await() const {
  if (event_ == nullptr) return;
  Arguments<PJRT_Event_Await_Args> args;
  args->event = event_;
  PJRT_INVOKE(*plugin_, Event_Await, args);
}

std::optional<hlo::Error> Event::error() const {
  if (event_ == nullptr) return {};
  Arguments<PJRT_Event_Error_Args> args;
  args->event = event_;
  return plugin_->ToError(plugin_->api().PJRT_Event_Error(args.get()));
}

namespace {

struct Callback {
  const Plugin& plugin;
  std::function<void(const hlo::Error*)> function;
};

// Made before memory is short.
const hlo::Error& NoMemory() {
  static const auto* error = new hlo::Error(hlo::ErrorCode::kResourceExhausted,
                                            "there is no memory left, not even to say what failed");
  return *error;
}

void RunCallback(PJRT_Error* error, void* user_arg) {
  std::unique_ptr<Callback> callback(static_cast<Callback*>(user_arg));
  std::optional<hlo::Error> converted;
  const hlo::Error* told = nullptr;
  try {
    converted = callback->plugin.ToError(error);
    if (converted) told = &*converted;
  } catch (const std::bad_alloc&) {
    told = &NoMemory();
  }
  try {
    callback->function(told);
  } catch (...) {  // a plugin in C knows no exceptions
  }
}

}  // namespace

void Event::OnReady(std::function<void(const hlo::Error*)> callback) const {
  if (event_ == nullptr) return callback(nullptr);
  (void)NoMemory();
  std::unique_ptr<Callback> owned(new Callback{*plugin_, std::move(callback)});
  Arguments<PJRT_Event_OnReady_Args> args;
  args->event = event_;
  args->callback = RunCallback;
  args->user_arg = owned.get();
  PJRT_INVOKE(*plugin_, Event_OnReady, args);
  owned.release();  // RunCallback deletes it, and may have done so
}

}  // namespace pjrt
