// Buffers that the host fills piece by piece, and streams of received data.
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"
#include "pjrt/plugin/buffer.h"

struct PJRT_AsyncHostToDeviceTransferManager {
  struct Piecewise {
    hlo::Shape shape;
    pjrt::plugin::ContentsPtr contents;
    std::shared_ptr<pjrt::plugin::Allocation> allocation;
    bool retrieved = false;
  };

  ~PJRT_AsyncHostToDeviceTransferManager();
  Piecewise& Get(int index) {
    if (index < 0 || index >= static_cast<int>(buffers.size())) {
      throw hlo::Error("buffer index " + std::to_string(index) + " is not below " +
                       std::to_string(buffers.size()));
    }
    return buffers[index];
  }

  std::shared_ptr<PJRT_Client> client;
  PJRT_Device* device;
  std::mutex mutex;
  std::vector<Piecewise> buffers;
};

PJRT_AsyncHostToDeviceTransferManager::~PJRT_AsyncHostToDeviceTransferManager() {
  using pjrt::boundary::Failure;
  for (Piecewise& buffer : buffers) {  // changes nothing for those that are complete
    if (buffer.contents->ready->is_set()) continue;
    buffer.contents->ready->Set(std::make_shared<Failure>(
        hlo::ErrorCode::kCancelled,
        "the transfer of " + buffer.shape.ToString() + " was given up before its last piece"));
  }
}

namespace pjrt::boundary {

using namespace plugin;
namespace {

using Manager = PJRT_AsyncHostToDeviceTransferManager;

// Under the lock. What it returns is to be set without, because that calls others back.
[[nodiscard]] CompletionPtr Finish(Manager::Piecewise& buffer, bool succeeded) {
  if (succeeded) buffer.contents->allocation = buffer.allocation;
  buffer.allocation = nullptr;
  return buffer.contents->ready;
}

void CheckUnfinished(const Manager::Piecewise& buffer) {
  if (buffer.allocation == nullptr) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     "the transfer of " + buffer.shape.ToString() + " is complete");
  }
}

}  // namespace

void Client_CreateBuffersForAsyncHostToDevice(
    PJRT_Client_CreateBuffersForAsyncHostToDevice_Args& args) {
  PJRT_Device& device = DeviceFrom(args.memory, nullptr);
  auto manager = std::make_unique<Manager>();
  manager->client = device.client->shared_from_this();
  manager->device = &device;
  for (size_t i = 0; i < args.num_shape_specs; ++i) {
    const PJRT_ShapeSpec& spec = args.shape_specs[i];
    Manager::Piecewise buffer;
    buffer.shape = ShapeFrom(spec.element_type, spec.dims, spec.num_dims);
    if (i < args.num_device_layouts && args.device_layouts != nullptr) {
      CheckRowMajor(args.device_layouts[i], buffer.shape);
    }
    buffer.contents = std::make_shared<Contents>(Contents{std::make_shared<Completion>(), nullptr});
    buffer.allocation = std::make_shared<Allocation>(buffer.shape.byte_size());
    manager->buffers.push_back(std::move(buffer));
  }
  args.transfer_manager = manager.release();
}

void AsyncHostToDeviceTransferManager_Destroy(
    PJRT_AsyncHostToDeviceTransferManager_Destroy_Args& args) {
  delete args.transfer_manager;
}

void AsyncHostToDeviceTransferManager_TransferData(
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args& args) {
  Manager& manager = Require(args.transfer_manager, "transfer manager");
  std::unique_lock lock(manager.mutex);
  Manager::Piecewise& buffer = manager.Get(args.buffer_index);
  CheckUnfinished(buffer);
  const int64_t total = buffer.shape.byte_size();
  if (args.offset < 0 || args.transfer_size < 0 || args.transfer_size > total ||
      args.offset > total - args.transfer_size) {
    throw hlo::Error(hlo::ErrorCode::kOutOfRange,
                     std::to_string(args.transfer_size) + " bytes at " +
                         std::to_string(args.offset) + " do not fit into the " +
                         std::to_string(total) + " of " + buffer.shape.ToString());
  }
  if (args.transfer_size > 0) {
    std::memcpy(static_cast<char*>(buffer.allocation->data()) + args.offset, args.data,
                args.transfer_size);
  }
  args.done_with_h2d_transfer = NewEvent(Completion::Done());
  if (!args.is_last_transfer) return;
  const CompletionPtr finished = Finish(buffer, /*succeeded=*/true);
  lock.unlock();
  finished->Set();
}

void AsyncHostToDeviceTransferManager_TransferLiteral(
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args& args) {
  Manager& manager = Require(args.transfer_manager, "transfer manager");
  std::unique_lock lock(manager.mutex);
  Manager::Piecewise& buffer = manager.Get(args.buffer_index);
  CheckUnfinished(buffer);
  const hlo::Shape shape = ShapeFrom(args.shape_element_type, args.shape_dims, args.shape_num_dims);
  if (shape != buffer.shape) {
    throw hlo::Error("a literal of " + shape.ToString() + " was given for a buffer of " +
                     buffer.shape.ToString());
  }
  CopyStrided(buffer.allocation->data(), ByteStrides(nullptr, shape), args.data,
              ByteStrides(args.shape_layout, shape), shape);
  args.done_with_h2d_transfer = NewEvent(Completion::Done());
  const CompletionPtr finished = Finish(buffer, /*succeeded=*/true);
  lock.unlock();
  finished->Set();
}

void AsyncHostToDeviceTransferManager_RetrieveBuffer(
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args& args) {
  Manager& manager = Require(args.transfer_manager, "transfer manager");
  std::lock_guard lock(manager.mutex);
  Manager::Piecewise& buffer = manager.Get(args.buffer_index);
  if (buffer.retrieved) {
    throw hlo::Error("buffer " + std::to_string(args.buffer_index) + " was retrieved already");
  }
  args.buffer_out = new PJRT_Buffer(*manager.device, buffer.shape, buffer.contents);
  buffer.retrieved = true;
}

void AsyncHostToDeviceTransferManager_Device(
    PJRT_AsyncHostToDeviceTransferManager_Device_Args& args) {
  args.device_out = Require(args.transfer_manager, "transfer manager").device;
}

void AsyncHostToDeviceTransferManager_BufferCount(
    PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args& args) {
  args.buffer_count = Require(args.transfer_manager, "transfer manager").buffers.size();
}

void AsyncHostToDeviceTransferManager_BufferSize(
    PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args& args) {
  args.buffer_size =
      Require(args.transfer_manager, "transfer manager").Get(args.buffer_index).shape.byte_size();
}

void AsyncHostToDeviceTransferManager_SetBufferError(
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args& args) {
  Manager& manager = Require(args.transfer_manager, "transfer manager");
  FailurePtr failure = FailureFrom(args.error_code, args.error_message, args.error_message_size);
  std::unique_lock lock(manager.mutex);
  Manager::Piecewise& buffer = manager.Get(args.buffer_index);
  CheckUnfinished(buffer);
  const CompletionPtr finished = Finish(buffer, /*succeeded=*/false);
  lock.unlock();
  finished->Set(std::move(failure));
}

// For profiles elsewhere; nothing is recorded here.
void AsyncHostToDeviceTransferManager_AddMetadata(
    PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args& args) {
  Require(args.transfer_manager, "transfer manager");
}

namespace {

// Nothing makes such streams, since programs here do not receive from the host.
[[noreturn]] void NoStreams() {
  throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                   "programs do not receive data from the host on this device");
}

}  // namespace

void CopyToDeviceStream_Destroy(PJRT_CopyToDeviceStream_Destroy_Args& args) {
  if (args.stream != nullptr) NoStreams();
}
void CopyToDeviceStream_AddChunk(PJRT_CopyToDeviceStream_AddChunk_Args& args) { NoStreams(); }
void CopyToDeviceStream_TotalBytes(PJRT_CopyToDeviceStream_TotalBytes_Args& args) { NoStreams(); }
void CopyToDeviceStream_GranuleSize(PJRT_CopyToDeviceStream_GranuleSize_Args& args) { NoStreams(); }
void CopyToDeviceStream_CurrentBytes(PJRT_CopyToDeviceStream_CurrentBytes_Args& args) {
  NoStreams();
}

}  // namespace pjrt::boundary
