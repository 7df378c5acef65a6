#include "lazy/data.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "hlo/error.h"
#include "lazy/device.h"
#include "lazy/interrupt.h"
#include "lazy/live_data.h"
#include "lazy/metrics.h"
#include "lazy/run_queue.h"
#include "lazy/span.h"
#include "lazy/sync_mutex.h"
#include "lazy/thread_number.h"
#include "pjrt/client/client.h"
#include "process/fork.h"

namespace lazy {
namespace {

std::atomic<int64_t> next_id{1};

process::Mutex& BufferMutex() {
  static auto* mutex = new process::Mutex;
  return *mutex;
}

}  // namespace

MissingValue::MissingValue(const hlo::Shape& shape)
    : hlo::Error(
          hlo::ErrorCode::kFailedPrecondition,
          "the buffer of a tensor of shape " + shape.ToString() +
              " was never made: the tensor is a placeholder, or what was recorded for it was "
              "forgotten (_clear_pending_irs)") {}

Data::Data(Device* device, ShapeRef shape, std::unique_ptr<pjrt::Buffer> buffer)
    : device_(device),
      shape_(shape),
      buffer_(std::move(buffer)),
      id_(next_id.fetch_add(1)),
      maker_(ThreadNumber()) {
  static auto* created = Counter("CreateDataHandles");
  Count(created);
  AddLiveData(this);
}

Data::~Data() {
  RemoveLiveData(this);
  static auto* destroyed = Counter("DestroyDataHandles");
  Count(destroyed);
}

const pjrt::Buffer& Data::buffer() const {
  if (host_contents_ != nullptr) return *SharedBuffer();
  if (buffer_ == nullptr) ThrowGivenUp();
  return *buffer_;
}

std::shared_ptr<const pjrt::Buffer> Data::SharedBuffer() const {
  std::shared_ptr<const HostContents> contents;
  {
    std::lock_guard lock(BufferMutex());
    if (HoldsCurrentBuffer() || host_contents_ == nullptr) {
      if (buffer_ == nullptr) ThrowGivenUp();
      return buffer_;
    }
    contents = host_contents_;
  }
  const void* bytes = contents->bytes();  // may wait for the device, so not under the lock
  std::lock_guard lock(BufferMutex());
  if (HoldsCurrentBuffer()) return buffer_;
  if (host_contents_ == nullptr) ThrowGivenUp();  // given up meanwhile
  buffer_ = device_->client().BufferFromHost(bytes, *shape_, device_->pjrt_device());
  return buffer_;
}

bool Data::HoldsCurrentBuffer() const {
  return buffer_ != nullptr && buffer_->client().get() == &device_->client();
}

std::shared_ptr<const HostContents> Data::SharedHostContents() const {
  std::lock_guard lock(BufferMutex());
  return host_contents_;
}

void Data::ShowOnHost(std::shared_ptr<const HostContents> view) {
  std::lock_guard lock(BufferMutex());
  if (host_contents_ == nullptr) host_contents_ = std::move(view);
}

void Data::KeepBufferOnly() {
  if (host_contents_ == nullptr) return;
  SharedBuffer();
  std::shared_ptr<const HostContents> contents;  // ends after the lock
  std::lock_guard lock(BufferMutex());
  host_contents_.swap(contents);
}

bool Data::has_buffer() const {
  std::lock_guard lock(BufferMutex());
  return buffer_ != nullptr || host_contents_ != nullptr;
}

void Data::ThrowGivenUp() const {
  if (!may_be_donated_) throw MissingValue(*shape_);  // donated without a wish: nobody's to read
  throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                   "the buffer of a tensor of shape " + shape_->ToString() +
                       " was donated to a computation and holds nothing any more");
}

void Data::Drop() {
  RemoveLiveData(this);
  std::shared_ptr<const pjrt::Buffer> buffer;
  std::shared_ptr<const HostContents> contents;
  // They end after the lock.
  std::lock_guard lock(BufferMutex());
  buffer_.swap(buffer);
  host_contents_.swap(contents);
}

void Data::MoveToCurrentClient() {
  if (host_contents_ != nullptr) return;  // SharedBuffer sees to them
  if (buffer_ == nullptr || buffer_->client().get() == &device_->client()) return;
  std::vector<std::byte> bytes(shape_->byte_size());
  buffer_->ToHost(bytes.data(), bytes.size());
  std::shared_ptr<const pjrt::Buffer> moved =
      device_->client().BufferFromHost(bytes.data(), *shape_, device_->pjrt_device());
  std::lock_guard lock(BufferMutex());
  buffer_.swap(moved);
}

Reference<Data> Data::OnHost(Device* device, ShapeRef shape,
                             std::shared_ptr<const HostContents> contents) {
  Reference<Data> data(new Data(device, shape, nullptr));
  data->host_contents_ = std::move(contents);
  return data;
}

Reference<Data> Data::Borrowed(Device* device, const hlo::Shape& shape,
                               std::unique_ptr<pjrt::Buffer> view) {
  Reference<Data> data(new Data(device, InternShape(shape).get(), std::move(view)));
  data->is_borrowed_ = true;
  return data;
}

Reference<Data> Data::FromHost(Device* device, const hlo::Shape& shape, const void* bytes) {
  static Metric* time = Metric::Get("TransferToDeviceTime");
  static Metric* size = Metric::Get("OutboundData", MetricUnit::kBytes);
  TimedSection timed(time);
  size->AddSample(static_cast<double>(shape.byte_size()));
  Span span("xla::upload");
  span.Add("bytes", int64_t{shape.byte_size()});
  auto buffer = ExplainingMemory(
      [&] { return device->client().BufferFromHost(bytes, shape, device->pjrt_device()); });
  return Reference<Data>(new Data(device, InternShape(shape).get(), std::move(buffer)));
}

namespace {

// Times and counts a copy of so many bytes to the host.
class Download {
 public:
  explicit Download(size_t bytes) : timed_(Time()), span_("xla::download") {
    static Metric* size = Metric::Get("InboundData", MetricUnit::kBytes);
    size->AddSample(static_cast<double>(bytes));
    span_.Add("bytes", static_cast<int64_t>(bytes));
  }

 private:
  static Metric* Time() {
    static Metric* time = Metric::Get("TransferFromDeviceTime");
    return time;
  }

  TimedSection timed_;
  Span span_;
};

bool HasFailed(const pjrt::Buffer& buffer) {
  try {
    buffer.Await();
  } catch (const std::exception&) {
    return true;
  }
  return false;
}

// Calls `read`, which may throw the error of the work that was to make the value: then nobody has
// to be told of it again.
template <typename F>
void TellingOfFailure(const Device* device, int64_t maker, const pjrt::Buffer& buffer, F&& read) {
  try {
    ExplainingMemory(read);
  } catch (...) {
    if (HasFailed(buffer)) ForgetFailedRuns(device, maker);
    throw;
  }
}

}  // namespace

std::shared_ptr<const pjrt::Buffer> Data::BufferToRead() const {
  std::shared_ptr<const pjrt::Buffer> buffer = SharedBuffer();
  if (!MayBeInterrupted() || buffer->ReadyEvent().IsReady()) return buffer;
  // What handlers of signals start meanwhile is not to get the memory.
  const Loan loan = [&] {
    const std::lock_guard lock(SyncMutex());
    buffer = SharedBuffer();
    return Loan(*this);
  }();
  AwaitOrInterrupt(buffer->ReadyEvent());
  return buffer;
}

void Data::ToHost(void* destination, size_t bytes) const {
  const Download download(bytes);
  if (const auto contents = SharedHostContents()) {
    if (bytes > 0) std::memcpy(destination, contents->bytes(), bytes);
    return;
  }
  const auto buffer = BufferToRead();
  TellingOfFailure(device_, maker_, *buffer, [&] { buffer->ToHost(destination, bytes); });
}

uintptr_t Data::Address() {
  const auto buffer = BufferToRead();
  TellingOfFailure(device_, maker_, *buffer, [&] { buffer->Await(); });
  const uintptr_t address = buffer->UnsafePointer();
  const std::lock_guard lock(SyncMutex());
  KeepBufferOnly();  // whoever knows the address may write there
  return address;
}

void Data::RaiseFailedChecks() const { device_->value_checks.RaiseThrough(last_checked_run_); }

bool Data::HasRowMajorBytes() const {
  if (SharedHostContents() != nullptr) return true;
  // Other devices tile their memory.
  const pjrt::Client& client = device_->client();
  return client.platform_name() == "cpu" &&
         client.plugin().has(&PJRT_Api::PJRT_Buffer_CopyRawToHost);
}

void Data::PartToHost(void* destination, size_t offset, size_t bytes) const {
  const Download download(bytes);
  if (const auto contents = SharedHostContents()) {
    const auto* begin = static_cast<const std::byte*>(contents->bytes()) + offset;
    if (bytes > 0) std::memcpy(destination, begin, bytes);
    return;
  }
  const auto buffer = BufferToRead();
  const auto [from, count] = std::pair(static_cast<int64_t>(offset), static_cast<int64_t>(bytes));
  TellingOfFailure(device_, maker_, *buffer,
                   [&] { buffer->CopyRawToHost(destination, from, count).Await(); });
}

}  // namespace lazy
