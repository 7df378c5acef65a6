#include "remote/client/client.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"
#include "process/fork.h"
#include "remote/address.h"
#include "remote/ring.h"

using pjrt::boundary::Memory;

namespace {

// TORCH_XLA_SHARED_MEMORY=0 makes every process a host of its own.
bool MayShareMemory(const remote::Endpoint& endpoint) {
  const char* allowed = std::getenv("TORCH_XLA_SHARED_MEMORY");
  if (allowed != nullptr && std::string_view(allowed) == "0") return false;
  return remote::IsLocal(endpoint.address);
}

}  // namespace

PJRT_Memory* PJRT_Device::memory_of_kind(const std::string& kind) const {
  for (PJRT_Memory* memory : memories) {
    if (Memory::Get(memory).kind == kind) return memory;
  }
  return default_memory;
}

PJRT_Client::PJRT_Client(const remote::Endpoint& endpoint)
    : description(remote::Connection::Describe(endpoint)),
      connection(std::make_shared<remote::Connection>(endpoint)),
      arena(connection, MayShareMemory(endpoint)) {
  process_index = description.process_index();
  AddMemories();
  AddDevices();
  topology.platform_name = description.platform_name();
  topology.platform_version = description.platform_version();
  topology.serialized = description.topology();
  // Never given back.
  if (const auto block = arena.Take(remote::Rings::kBytes)) {
    connection->UseRings(block->region, std::shared_ptr<char>(block->segment, block->data));
    if (description.host_memory()) arena.ShareResults();
  }
}

void PJRT_Client::AddMemories() {
  for (const remote::wire::Memory& message : description.memories()) {
    auto memory = std::make_unique<Memory>();
    memory->id = message.id();
    memory->kind = message.kind();
    memory->kind_id = message.kind_id();
    memory->debug_string = message.debug_string();
    memory->text = message.text();
    memory_descriptions_.push_back({message.kind(), message.kind_id()});
    memory_handles.push_back(memories.emplace_back(std::move(memory)).get());
  }
}

void PJRT_Client::AddDevices() {
  for (const remote::wire::Device& message : description.devices()) {
    PJRT_Device& device = *devices.emplace_back(std::make_unique<PJRT_Device>());
    device.client = this;
    device.place = static_cast<uint32_t>(device_handles.size());
    device.addressable = message.addressable();
    device.local_hardware_id = message.local_hardware_id();
    PJRT_DeviceDescription& known = device.description;
    known.id = message.id();
    known.process_index = message.process_index();
    known.kind = message.kind();
    known.debug_string = message.debug_string();
    known.text = message.text();
    known.attributes =
        pjrt::ToC(attributes_.emplace_back(remote::FromMessage(message.attributes())));
    for (uint32_t place : message.memories()) {
      Memory& memory = *memories.at(place);
      if (message.has_default_memory() && message.default_memory() == place) {
        device.default_memory = &memory;
        known.default_memory = device.memories.size();
      }
      memory.devices.push_back(&device);
      device.memories.push_back(&memory);
      known.memories.push_back(&memory_descriptions_.at(place));
    }
    device_handles.push_back(&device);
    topology.handles.push_back(&known);
    if (device.addressable) addressable_handles.push_back(&device);
  }
}

PJRT_Device& PJRT_Client::device(int64_t id) const {
  for (PJRT_Device* device : device_handles) {
    if (device->description.id == id) return *device;
  }
  throw hlo::Error(hlo::ErrorCode::kNotFound, "there is no device " + std::to_string(id) +
                                                  "; the client has " +
                                                  std::to_string(devices.size()));
}

remote::wire::Place PJRT_Client::PlaceOf(PJRT_Memory* memory, PJRT_Device* device) const {
  remote::wire::Place place;
  if (memory != nullptr) {
    const auto found = std::find(memory_handles.begin(), memory_handles.end(), memory);
    if (found == memory_handles.end()) throw hlo::Error("the memory belongs to another client");
    place.set_memory(static_cast<uint32_t>(found - memory_handles.begin()));
    return place;
  }
  const PJRT_Device& named = pjrt::boundary::Require(device, "memory and device");
  if (named.client != this) throw hlo::Error("the device belongs to another client");
  place.set_device(named.place);
  return place;
}

namespace {

// The framework's references, until Client_Destroy.
struct Clients {
  std::mutex mutex;
  std::vector<std::shared_ptr<PJRT_Client>> list;
  static Clients& Get() {
    static auto* clients = new Clients;
    return *clients;
  }
};

}  // namespace

std::vector<std::shared_ptr<PJRT_Client>> remote::LiveClients() {
  Clients& clients = Clients::Get();
  std::lock_guard lock(clients.mutex);
  return clients.list;
}

namespace pjrt::boundary {

const TopologyDescription& DescriptionOf(const PJRT_TopologyDescription& topology) {
  return topology;
}
const ClientDescription& DescriptionOf(const PJRT_Client& client) { return client; }
PJRT_TopologyDescription& TopologyOf(PJRT_Client& client) { return client.topology; }

remote::Connection::Handler CompletionHandler(CompletionPtr completion) {
  return [completion](remote::wire::Reply& reply) { completion->Set(remote::FailureOf(reply)); };
}

void Plugin_Initialize(PJRT_Plugin_Initialize_Args& args) {}

// The server's plugin's, of the server that the environment names.
void Plugin_Attributes(PJRT_Plugin_Attributes_Args& args) {
  // A static's first run would keep forks away meanwhile (process/static_initialization.cc).
  static std::once_flag asked;
  static const std::vector<PJRT_NamedValue>* handed_out = nullptr;
  const process::MayFork waiting;  // for the server, or another thread's answer from it
  std::call_once(asked, [] {
    const auto* attributes = new NamedValues(remote::FromMessage(
        remote::Connection::Describe(remote::Endpoint::FromEnvironment()).attributes()));
    handed_out = new std::vector<PJRT_NamedValue>(ToC(*attributes));
  });
  args.attributes = handed_out->data();
  args.num_attributes = handed_out->size();
}

void Client_Create(PJRT_Client_Create_Args& args) {
  if (args.num_options != 0) {
    const PJRT_NamedValue& option = args.create_options[0];
    throw hlo::Error("unknown option '" + std::string(option.name, option.name_size) +
                     "': the devices are the runtime server's, and its options are given when it "
                     "is started; programs of several processes do not run on one");
  }
  auto client = std::make_shared<PJRT_Client>(remote::Endpoint::FromEnvironment());
  args.client = client.get();
  Clients& clients = Clients::Get();
  std::lock_guard lock(clients.mutex);
  clients.list.push_back(std::move(client));
}

void Client_Destroy(PJRT_Client_Destroy_Args& args) {
  std::shared_ptr<PJRT_Client> last;  // destroyed after the lock is given back
  Clients& clients = Clients::Get();
  std::lock_guard lock(clients.mutex);
  const auto found =
      std::ranges::find(clients.list, args.client, &std::shared_ptr<PJRT_Client>::get);
  if (found == clients.list.end()) return;
  last = std::move(*found);
  clients.list.erase(found);
}

void Client_LookupDevice(PJRT_Client_LookupDevice_Args& args) {
  args.device = &Require(args.client, "client").device(args.id);
}

void Client_LookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args& args) {
  for (PJRT_Device* device : Require(args.client, "client").addressable_handles) {
    if (device->local_hardware_id != args.local_hardware_id) continue;
    args.addressable_device = device;
    return;
  }
  throw hlo::Error(hlo::ErrorCode::kNotFound, "this process has no device of the hardware id " +
                                                  std::to_string(args.local_hardware_id));
}

void Client_DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args& args) {
  const PJRT_Client& client = Require(args.client, "client");
  remote::wire::Request request;
  request.mutable_device_assignment()->set_replicas(args.num_replicas);
  request.mutable_device_assignment()->set_partitions(args.num_partitions);
  const remote::wire::Reply reply = client.connection->Ask(std::move(request));
  const auto& ids = reply.numbers().numbers();
  CheckRoom(args, static_cast<size_t>(ids.size()));
  for (int i = 0; i < ids.size(); ++i) args.default_assignment[i] = static_cast<int>(ids[i]);
}

}  // namespace pjrt::boundary
