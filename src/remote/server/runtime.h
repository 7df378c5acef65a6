// What a server serves: a plugin's devices.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pjrt/client/client.h"
#include "remote/messages.h"

namespace remote {

struct Runtime {
  // Throws what the plugin says.
  Runtime(const std::string& plugin_path, const pjrt::NamedValues& options);

  // Throw for what is not there.
  const pjrt::Device& device(uint32_t place) const;
  const pjrt::Memory& memory(uint32_t place) const;
  // The place of a device in Description.devices.
  uint32_t PlaceOf(const pjrt::Device& device) const;

  std::shared_ptr<pjrt::Client> client;
  std::vector<pjrt::Memory*> memories;
  wire::Description description;
  bool takes_result_memory = false;  // the plugin
};

// What a client wants to know of a program that was compiled for it.
void DescribeExecutable(const Runtime& runtime, const pjrt::LoadedExecutable& executable,
                        wire::Executable* message);

}  // namespace remote
