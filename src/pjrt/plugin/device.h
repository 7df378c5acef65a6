// A device: a queue of work and a memory.
#pragma once

#include "pjrt/boundary/memory.h"
#include "pjrt/c_api.h"
#include "pjrt/plugin/queue.h"

struct PJRT_Device {
  PJRT_Device(PJRT_Client* client, PJRT_DeviceDescription* description);
  bool addressable() const;  // of this process
  PJRT_Client* client;
  PJRT_DeviceDescription* description;
  pjrt::boundary::Memory memory;
  PJRT_Memory* memories[1];
  pjrt::plugin::Queue queue;
};
