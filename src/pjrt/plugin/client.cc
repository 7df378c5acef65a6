#include "pjrt/plugin/client.h"

#include "cpu/collective/communicator.h"
#include "hlo/bytecode.h"
#include "hlo/lapack_call.h"
#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"
#include "pjrt/boundary/named_value.h"
#include "pjrt/plugin/key_value_store.h"
#include "pjrt/wire/option_names.h"

PJRT_Client::PJRT_Client(const pjrt::plugin::ClientOptions& options, cpu::KeyValueStore store)
    : asynchronous(options.asynchronous),
      topology(options.num_devices, options.num_processes),
      store_(std::move(store)),
      job_secret_(options.job_secret) {
  process_index = options.process_index;
  if (options.num_processes > 1 && (!store_.put || !store_.get)) {
    throw hlo::Error("option 'num_nodes' is " + std::to_string(options.num_processes) +
                     ", but no key-value callbacks are given, by which the processes could find "
                     "each other");
  }
  for (PJRT_DeviceDescription* description : topology.handles) {
    PJRT_Device* device =
        devices.emplace_back(std::make_unique<PJRT_Device>(this, description)).get();
    device_handles.push_back(device);
    if (!device->addressable()) continue;
    addressable_handles.push_back(device);
    memory_handles.push_back(&device->memory);
  }
}

PJRT_Client::~PJRT_Client() {
  devices.clear();  // their queues end before the world
  const process::MayFork waiting;
  communicator_.reset();
}

cpu::Communicator* PJRT_Client::communicator() {
  if (topology.num_processes == 1) return nullptr;
  if (process::ForkGeneration() != generation_) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     "this process is a forked child of process " + std::to_string(process_index) +
                         " and cannot run its collectives");
  }
  const process::MayFork waiting;  // for the other processes, and for a thread that waits for them
  std::lock_guard lock(communicator_mutex_);
  if (communicator_ == nullptr) {
    cpu::CommunicatorOptions options;
    options.rank = process_index;
    options.size = topology.num_processes;
    options.timeout = cpu::CollectiveTimeout();
    options.heartbeat_timeout = cpu::HeartbeatTimeout();
    options.secret = job_secret_;
    communicator_ = cpu::ConnectCommunicator(options, store_);
  }
  return communicator_.get();
}

PJRT_Device& PJRT_Client::device(int64_t id) const {
  if (id < 0 || id >= static_cast<int64_t>(devices.size())) {
    throw hlo::Error(hlo::ErrorCode::kNotFound, "there is no device " + std::to_string(id) +
                                                    "; the client has " +
                                                    std::to_string(devices.size()));
  }
  return *devices[id];
}

namespace pjrt::boundary {

using namespace plugin;

const ClientDescription& DescriptionOf(const PJRT_Client& client) { return client; }
PJRT_TopologyDescription& TopologyOf(PJRT_Client& client) { return client.topology; }

void Plugin_Initialize(PJRT_Plugin_Initialize_Args& args) {}

void Plugin_Attributes(PJRT_Plugin_Attributes_Args& args) {
  static const PJRT_NamedValue attributes[] = {
      Attribute("stablehlo_current_version", hlo::kStablehloVersion),
      Attribute("stablehlo_minimum_version", hlo::kStablehloMinimumVersion),
      Attribute("engine_version", PlatformVersion()),
      Attribute(hlo::lapack::kPluginAttribute, int64_t{1}),
      Attribute(pjrt::kJobSecret, int64_t{1}),
  };
  args.attributes = attributes;
  args.num_attributes = std::size(attributes);
}

void Client_Create(PJRT_Client_Create_Args& args) {
  auto client = std::make_shared<PJRT_Client>(
      ParseClientOptions(args.create_options, args.num_options), StoreFrom(args));
  client->self = client;
  args.client = client.get();
}

void Client_Destroy(PJRT_Client_Destroy_Args& args) {
  if (args.client == nullptr) return;
  auto last = std::move(args.client->self);
}

void Client_LookupDevice(PJRT_Client_LookupDevice_Args& args) {
  args.device = &Require(args.client, "client").device(args.id);
}

void Client_LookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args& args) {
  const PJRT_Client& client = Require(args.client, "client");
  const int64_t id = args.local_hardware_id;
  if (id < 0 || id >= static_cast<int64_t>(client.addressable_handles.size())) {
    throw hlo::Error(hlo::ErrorCode::kNotFound,
                     "this process has no device of the hardware id " + std::to_string(id));
  }
  args.addressable_device = client.addressable_handles[id];
}

void Client_DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args& args) {
  const PJRT_Client& client = Require(args.client, "client");
  const int64_t needed = static_cast<int64_t>(args.num_replicas) * args.num_partitions;
  if (args.num_replicas < 1 || args.num_partitions < 1 ||
      needed > static_cast<int64_t>(client.devices.size())) {
    throw hlo::Error(std::to_string(args.num_replicas) + " replicas of " +
                     std::to_string(args.num_partitions) + " partitions cannot run on " +
                     std::to_string(client.devices.size()) + " devices");
  }
  CheckRoom(args, static_cast<size_t>(needed));
  // What fits into this process runs here.
  const bool local = needed <= static_cast<int64_t>(client.addressable_handles.size());
  const auto& handles = local ? client.addressable_handles : client.device_handles;
  for (int64_t i = 0; i < needed; ++i) args.default_assignment[i] = handles[i]->description->id;
}

}  // namespace pjrt::boundary
