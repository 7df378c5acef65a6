#include "aten/runtime_hooks.h"

#include <ATen/detail/XLAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <chrono>
#include <optional>

#include "aten/generator.h"
#include "lazy/ordinal.h"
#include "lazy/run_queue.h"
#include "lazy/sync.h"

namespace torch_xla {
namespace {

// None is this process's first, whatever number that has: a forked child may be of another rank.
thread_local std::optional<int> current_device;
std::atomic<Synchronizer> synchronizer{&Synchronize};

// Nothing is pending before there is a runtime.
void SynchronizeIfStarted(c10::DeviceIndex index) {
  if (!lazy::Runtime::IsStarted()) return;
  synchronizer.load()(lazy::Runtime::Get().device(index < 0 ? CurrentDevice() : index));
}

// When everything before an event was over; known for events that measure time.
struct Moment {
  c10::DeviceIndex device;
  std::optional<std::chrono::steady_clock::time_point> time;
};

// One stream: a device runs its work in order, and work that is recorded only begins when somebody
// waits. So an event that measures time waits for what is before it.
class GuardImpl final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::XLA; }
  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device old = getDevice();
    uncheckedSetDevice(device);
    return old;
  }
  c10::Device getDevice() const override {
    return c10::Device(c10::DeviceType::XLA, static_cast<c10::DeviceIndex>(CurrentDevice()));
  }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) SetCurrentDevice(device.index());
  }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  // Autograd asks this once to start a thread for each device; before the runtime has started (no
  // tensor exists then) it must not start it.
  c10::DeviceIndex deviceCount() const noexcept override {
    try {
      return static_cast<c10::DeviceIndex>(lazy::OrdinalCount());
    } catch (...) {
      return 0;
    }
  }
  bool queryStream(const c10::Stream& stream) const override {
    synchronizeStream(stream);
    return true;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    SynchronizeIfStarted(stream.device_index());
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    SynchronizeIfStarted(index);
  }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag flag) const override {
    if (*event == nullptr) *event = new Moment;
    auto* moment = static_cast<Moment*>(*event);
    moment->device = stream.device_index();
    moment->time.reset();
    if (flag != c10::EventFlag::BACKEND_DEFAULT) return;
    SynchronizeIfStarted(moment->device);
    moment->time = std::chrono::steady_clock::now();
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void* event) const override {
    synchronizeEvent(event);
    return true;
  }
  void synchronizeEvent(void* event) const override {
    auto* moment = static_cast<Moment*>(event);
    if (moment != nullptr && !moment->time) SynchronizeIfStarted(moment->device);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Moment*>(event);
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    auto time = [](void* event) {
      auto* moment = static_cast<Moment*>(event);
      TORCH_CHECK(moment != nullptr && moment->time,
                  "Both events must be recorded before calculating elapsed time.");
      return *moment->time;
    };
    return std::chrono::duration<double, std::milli>(time(end) - time(start)).count();
  }
};

C10_REGISTER_GUARD_IMPL(XLA, GuardImpl)

// With one stream nothing is freed that another one uses.
TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("record_stream", +[](at::Tensor&, c10::Stream) {});
}

}  // namespace

int CurrentDevice() { return current_device ? *current_device : lazy::FirstOrdinal(); }
void SetCurrentDevice(int ordinal) {
  current_device.reset();
  if (ordinal != lazy::FirstOrdinal()) current_device = ordinal;
}
void Synchronize(lazy::Device* device) {
  lazy::Sync(device, /*wait=*/true);
  lazy::WaitDeviceOps();
}

void SetSynchronizer(Synchronizer other) { synchronizer = other; }

int DeviceCount() { return static_cast<int>(lazy::Runtime::Get().devices().size()); }

namespace detail {

struct XLAHooks final : at::XLAHooksInterface {
  // torch 2.11 gives arguments, which say nothing.
  template <typename... Arguments>
  explicit XLAHooks(const Arguments&...) {}
  void init() const override {}
  bool hasXLA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return lazy::Runtime::IsStarted(); }
  c10::DeviceIndex deviceCount() const override {
    DeviceCount();  // starts the runtime
    return static_cast<c10::DeviceIndex>(lazy::OrdinalCount());
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(CurrentDevice());
  }
  void setCurrentDevice(c10::DeviceIndex device) const override { SetCurrentDevice(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const c10::DeviceIndex old = getCurrentDevice();
    SetCurrentDevice(device);
    return old;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? getCurrentDevice() : exchangeDevice(device);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return DefaultGenerator(device < 0 ? CurrentDevice() : device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return at::make_generator<XlaGeneratorImpl>(
        c10::Device(c10::DeviceType::XLA, device < 0 ? getCurrentDevice() : device));
  }
  bool isPinnedPtr(const void*) const override { return false; }
  std::string showConfig() const override { return "torch_xla, PJRT"; }
};

}  // namespace detail
}  // namespace torch_xla

namespace at {
REGISTER_XLA_HOOKS(torch_xla::detail::XLAHooks)
}  // namespace at
