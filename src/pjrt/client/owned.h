// Objects of a plugin that somebody owns. What takes one by value destroys it in any case, also
// where there is no memory for what was to keep it.
#pragma once

#include <utility>

#include "pjrt/client/call.h"
#include "pjrt/client/plugin.h"

namespace pjrt {

// kDestroy is the function of the table, kObject the object's field in its arguments.
template <auto kDestroy, auto kObject>
class Owned;

template <typename Args, PJRT_Error* (*PJRT_Api::*kDestroy)(Args*), typename Object,
          Object* Args::* kObject>
class Owned<kDestroy, kObject> {
 public:
  Owned(const Plugin& plugin, Object* object) : plugin_(&plugin), object_(object) {}
  Owned(Owned&& other) noexcept
      : plugin_(other.plugin_), object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&&) = delete;
  ~Owned() {
    if (object_ == nullptr) return;
    Arguments<Args> args;
    args.get()->*kObject = object_;
    (void)plugin_->ToError((plugin_->api().*kDestroy)(args.get()));
  }

  Object* get() const { return object_; }
  const Plugin& plugin() const { return *plugin_; }

 private:
  const Plugin* plugin_;
  Object* object_;  // null: given on
};

using OwnedBuffer = Owned<&PJRT_Api::PJRT_Buffer_Destroy, &PJRT_Buffer_Destroy_Args::buffer>;
using OwnedExecutable =
    Owned<&PJRT_Api::PJRT_Executable_Destroy, &PJRT_Executable_Destroy_Args::executable>;
using OwnedLoadedExecutable = Owned<&PJRT_Api::PJRT_LoadedExecutable_Destroy,
                                    &PJRT_LoadedExecutable_Destroy_Args::executable>;
using OwnedTopology = Owned<&PJRT_Api::PJRT_TopologyDescription_Destroy,
                            &PJRT_TopologyDescription_Destroy_Args::topology>;

}  // namespace pjrt
