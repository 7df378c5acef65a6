#include "pjrt/boundary/device_description.h"

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/extensions.h"
#include "pjrt/boundary/functions.h"

struct PJRT_AsyncTrackingEvent {};
struct PJRT_Device_Attributes {};

namespace pjrt::boundary {
namespace {

const PJRT_DeviceDescription& Get(const PJRT_DeviceDescription* description) {
  return Require(description, "device description");
}

void MemoryDescriptions(PJRT_DeviceDescription_MemoryDescriptions_Args& args) {
  const PJRT_DeviceDescription& description = Get(args.device_description);
  args.memory_descriptions = description.memories.data();
  args.num_memory_descriptions = description.memories.size();
  args.default_memory_index = description.default_memory;
}

void MemoryDescriptionKind(PJRT_MemoryDescription_Kind_Args& args) {
  const PJRT_MemoryDescription& memory = Require(args.memory_description, "memory description");
  args.kind = memory.kind.data();
  args.kind_size = memory.kind.size();
  args.kind_id = memory.kind_id;
}

}  // namespace

void DeviceDescription_Id(PJRT_DeviceDescription_Id_Args& args) {
  args.id = Get(args.device_description).id;
}

void DeviceDescription_ProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args& args) {
  args.process_index = Get(args.device_description).process_index;
}

void DeviceDescription_Attributes(PJRT_DeviceDescription_Attributes_Args& args) {
  const PJRT_DeviceDescription& description = Get(args.device_description);
  args.num_attributes = description.attributes.size();
  args.attributes = description.attributes.data();
}

void DeviceDescription_Kind(PJRT_DeviceDescription_Kind_Args& args) {
  const std::string& kind = Get(args.device_description).kind;
  args.device_kind = kind.data();
  args.device_kind_size = kind.size();
}

void DeviceDescription_DebugString(PJRT_DeviceDescription_DebugString_Args& args) {
  const std::string& text = Get(args.device_description).debug_string;
  args.debug_string = text.data();
  args.debug_string_size = text.size();
}

void DeviceDescription_ToString(PJRT_DeviceDescription_ToString_Args& args) {
  const std::string& text = Get(args.device_description).text;
  args.to_string = text.data();
  args.to_string_size = text.size();
}

void Device_GetDescription(PJRT_Device_GetDescription_Args& args) {
  args.device_description = &DescriptionOf(Require(args.device, "device"));
}

void Device_GetAttributes(PJRT_Device_GetAttributes_Args& args) {
  const PJRT_DeviceDescription& description = DescriptionOf(Require(args.device, "device"));
  args.attributes = description.attributes.data();
  args.num_attributes = description.attributes.size();
  args.device_attributes = nullptr;
  args.attributes_deleter = [](PJRT_Device_Attributes*) {};
}

// Marks spans in profiles elsewhere; nothing is recorded here.
void Device_CreateAsyncTrackingEvent(PJRT_Device_CreateAsyncTrackingEvent_Args& args) {
  Require(args.device, "device");
  args.event = new PJRT_AsyncTrackingEvent;
}

void AsyncTrackingEvent_Destroy(PJRT_AsyncTrackingEvent_Destroy_Args& args) { delete args.event; }

PJRT_MemoryDescriptions_Extension MemoryDescriptionsExtension(PJRT_Extension_Base* next) {
  return {
      {sizeof(PJRT_MemoryDescriptions_Extension), PJRT_Extension_Type_MemoryDescriptions, next},
      &Entry<PJRT_DeviceDescription_MemoryDescriptions_Args, MemoryDescriptions>,
      &Entry<PJRT_MemoryDescription_Kind_Args, MemoryDescriptionKind>,
  };
}

}  // namespace pjrt::boundary
